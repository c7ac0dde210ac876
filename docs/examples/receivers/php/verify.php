<?php
function refusal($secret, $id, $sent_at, $signatures, $body, $now)
{
    if ($id === '' || $sent_at === '' || $signatures === '') {
        return 'missing_header';
    }
    if (!preg_match('/\A[0-9]{1,12}\z/', $sent_at)) {
        return 'malformed_timestamp';
    }
    if ($now - (int) $sent_at > 300) {
        return 'timestamp_too_old';
    }
    if ((int) $sent_at - $now > 300) {
        return 'timestamp_too_new';
    }
    $key = base64_decode(preg_replace('/\Awhsec_/', '', $secret));
    $right = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sent_at.$body", $key, true));
    $reason = 'no_v1_signature';
    foreach (explode(' ', $signatures) as $one) {
        if (hash_equals($right, $one)) {
            return '';
        }
        if (str_starts_with($one, 'v1,')) {
            $reason = 'wrong_signature';
        }
    }
    return $reason;
}
