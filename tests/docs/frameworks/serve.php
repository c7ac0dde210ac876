<?php
// Serves docs/examples/laravel: what the middleware uses of Laravel, and a controller behind it.
namespace Illuminate\Http {
    class Request
    {
        public function header($name, $default)
        {
            return $_SERVER['HTTP_' . strtoupper(strtr($name, '-', '_'))] ?? $default;
        }

        public function getContent()
        {
            return file_get_contents('php://input');
        }
    }
}

namespace {
    require 'verify.php';
    require 'VerifyCarteiro.php';

    function config($key)
    {
        return $key === 'services.carteiro.secret' ? getenv('WEBHOOK_SECRET') : null;
    }

    function response($text, $status)
    {
        return [$text, $status];
    }

    $request = new Illuminate\Http\Request();
    $middleware = new App\Http\Middleware\VerifyCarteiro();
    [$text, $status] = $middleware->handle($request, function ($request) {
        $id = $request->header('webhook-id', '');
        if (@fopen(sys_get_temp_dir() . "/carteiro-$id", 'x')) {
            error_log(json_decode($request->getContent())->event . " $id");
        }
        return ['', 204];
    });
    http_response_code($status);
    echo $text;
}
