<?php
// Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says.
require 'verify.php';

while (($line = fgets(STDIN)) !== false) {
    $fields = [];
    foreach (explode(' ', trim($line)) as $field) {
        $fields[] = $field === '-' ? '' : base64_decode($field, true);
    }
    [$secret, $id, $sent_at, $signatures, $body, $now] = $fields;
    echo refusal($secret, $id, $sent_at, $signatures, $body, (int) $now) ?: 'accepted', "\n";
}
