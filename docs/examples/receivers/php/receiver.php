<?php
require 'verify.php';

$body = file_get_contents('php://input');
$id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
$sent_at = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
$signatures = $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '';
$reason = refusal(getenv('WEBHOOK_SECRET'), $id, $sent_at, $signatures, $body, time());
if ($reason !== '') {
    http_response_code(401);
    exit($reason);
}
http_response_code(204);
// A file that must not exist yet; use a table with a unique column instead.
if (@fopen(sys_get_temp_dir() . "/carteiro-$id", 'x')) {
    error_log(json_decode($body)->event . " $id");
}
