<?php
// Verify webhooks in Laravel: a middleware that lets requests of Carteiro through.
//
// Save it in app/Http/Middleware, require verify.php (docs/examples/receivers/php) by "files" of
// composer.json's autoload, put the secret into config/services.php as carteiro.secret, and into
// routes/api.php, whose routes want no CSRF token:
//   Route::post('/carteiro', CarteiroController::class)->middleware(VerifyCarteiro::class);
// The controller takes each event once: in the transaction of its work, insertOrIgnore the header
// webhook-id into a table where it is unique; 0 rows mean that the event was there before.

namespace App\Http\Middleware;

use Closure;
use Illuminate\Http\Request;

class VerifyCarteiro
{
    public function handle(Request $request, Closure $next)
    {
        $reason = \refusal(
            config('services.carteiro.secret'),
            $request->header('webhook-id', ''),
            $request->header('webhook-timestamp', ''),
            $request->header('webhook-signature', ''),
            $request->getContent(), // the bytes as they came
            time()
        );
        return $reason === '' ? $next($request) : response($reason, 401);
    }
}
