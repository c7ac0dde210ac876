"""All routes of the console."""

from functools import partial

from aiohttp import web

from gateway.console.account import (
    api_keys,
    audit,
    checkpoints,
    email,
    forgotten,
    login,
    password,
    privacy,
    profile,
    second_step,
    two_factor_pages,
)
from gateway.console.crm import crm_routes as desk
from gateway.console.deliveries import deliveries, history, recoveries, steering
from gateway.console.files import export_page, import_pages
from gateway.console.layout import static_files
from gateway.console.layout.pages import Handler, action, form_only, nowhere, page, upload
from gateway.console.overview import overview
from gateway.console.records import find_page, hostnames, orders, payment_secret
from gateway.console.records.sections import SECTIONS, add_records
from gateway.console.webhooks import (
    certification,
    connect_link,
    connect_token,
    doctor,
    file_pages,
    guide,
    rotation,
    snapshots,
    webhook_form,
    webhooks,
)
from gateway.domain.imports.files import MOST_BYTES


def add_console(router: web.UrlDispatcher) -> None:
    """Add the routes of the console under /console."""
    get = router.add_get

    def post(path: str, handler: Handler) -> None:
        router.add_post(path, handler)
        forms.append(path)

    forms: list[str] = []
    get("/", page(login.home, public=True))
    get("/console/static/{name:.+}", static_files.serve)

    get("/console", page(overview.index))
    get("/console/charts", page(overview.compare))
    get("/console/sign-in", page(login.sign_in_page, public=True))
    post("/console/sign-in", action(login.sign_in, public=True, limit=login.slow_down))
    post("/console/sign-in/code", action(second_step.check, public=True))
    get("/console/forgotten-password", page(forgotten.ask_page, public=True))
    post("/console/forgotten-password", action(forgotten.ask, public=True))
    get("/console/reset-password", page(forgotten.reset_page, public=True))
    post("/console/reset-password", action(forgotten.reset, public=True))
    get("/console/confirm-email", page(email.confirm_page, public=True))
    post("/console/confirm-email", action(email.confirm, public=True))
    post("/console/sign-out", action(login.sign_out, enrolling=True))
    get("/console/first-account", page(login.first_account_page, public=True))
    post(
        "/console/first-account",
        action(login.first_account, public=True, limit=login.slow_down),
    )

    get(connect_link.PATH, page(connect_link.show))
    post(connect_link.PATH, action(connect_link.decide))
    router.add_post(f"{connect_link.PATH}/token", connect_token.exchange)

    get("/console/webhooks", page(webhooks.index))
    post("/console/webhooks", action(webhooks.create))
    get("/console/webhooks/new", page(webhooks.new))
    get("/console/webhooks/export", page(file_pages.export))
    get(file_pages.PATH, page(file_pages.new))
    post(file_pages.PATH, upload(file_pages.upload, file_pages.MOST_BYTES))
    post(f"{file_pages.PATH}/apply", action(file_pages.apply))
    get(f"{file_pages.PATH}/made", page(file_pages.made))
    post("/console/webhooks/preview", action(webhook_form.preview_new))
    get("/console/webhooks/{id}", page(webhooks.show))
    post("/console/webhooks/{id}", action(webhooks.edit))
    get("/console/webhooks/{id}/edit", page(webhooks.edit_page))
    get("/console/webhooks/{id}/unmatched", page(webhooks.unmatched_page))
    post("/console/webhooks/{id}/unmatched", action(webhooks.cancel_unmatched))
    post("/console/webhooks/{id}/preview", action(webhook_form.preview))
    post("/console/webhooks/{id}/pause", action(webhooks.pause))
    get("/console/webhooks/{id}/activate", page(webhooks.activate_page))
    post("/console/webhooks/{id}/activate", action(webhooks.activate))
    get("/console/webhooks/{id}/delete", page(webhooks.delete_page))
    post("/console/webhooks/{id}/delete", action(webhooks.delete))
    get("/console/webhooks/{id}/rotate", page(rotation.show))
    post("/console/webhooks/{id}/rotate", action(rotation.stage))
    post("/console/webhooks/{id}/rotate/activate", action(rotation.activate))
    post("/console/webhooks/{id}/rotate/cancel", action(rotation.cancel))
    post("/console/webhooks/{id}/test", action(webhooks.test))
    get("/console/webhooks/{id}/doctor", page(doctor.show))
    post("/console/webhooks/{id}/doctor", action(doctor.examine))
    get("/console/webhooks/{id}/certify", page(certification.show))
    post("/console/webhooks/{id}/certify", action(certification.certify))
    get("/console/webhooks/{id}/guide", page(guide.show))
    post("/console/webhooks/{id}/guide", action(guide.check))

    get("/console/webhooks/{id}/recover", page(recoveries.show))
    post("/console/webhooks/{id}/recover", action(recoveries.start))
    get("/console/webhooks/{id}/snapshot", page(snapshots.show))
    post("/console/webhooks/{id}/snapshot", action(snapshots.start))
    get("/console/jobs/{id}", page(recoveries.show_job))
    post("/console/jobs/{id}/cancel", action(recoveries.cancel))

    get("/console/webhooks/{id}/deliveries", page(history.of_webhook))
    get("/console/deliveries", page(history.deliveries))
    post("/console/deliveries/selected", action(steering.selected))
    get("/console/deliveries/{id}", page(deliveries.show))
    post("/console/deliveries/{id}/now", action(steering.try_now))
    post("/console/deliveries/{id}/cancel", action(steering.cancel))
    get("/console/deliveries/{id}/replay", page(deliveries.replay_page))
    post("/console/deliveries/{id}/replay", action(deliveries.replay_one))
    post("/console/deliveries/{id}/skip", action(steering.skip))

    get("/console/privacy", page(privacy.index))
    get("/console/privacy/{id}", page(privacy.person))
    get("/console/privacy/{id}/file", page(privacy.file))
    get("/console/privacy/{id}/erase", page(privacy.erase_page))
    post("/console/privacy/{id}/erase", action(privacy.erase))
    get("/console/erasures/{id}", page(privacy.erasure))

    get("/console/events", page(history.events))
    get("/console/events/{id}", page(history.event))

    get(find_page.PATH, page(partial(find_page.show, SECTIONS)))
    desk.add(get, post)
    post("/console/orders/selected", action(orders.selected))
    add_records(get, post)
    get("/console/stores/{id}/hostnames", page(hostnames.show))
    post("/console/stores/{id}/hostnames", action(hostnames.check))
    get("/console/stores/{id}/payment-secret", page(payment_secret.show))
    post("/console/stores/{id}/payment-secret", action(payment_secret.stage))
    post("/console/stores/{id}/payment-secret/activate", action(payment_secret.activate))
    post("/console/stores/{id}/payment-secret/cancel", action(payment_secret.cancel))

    get("/console/export/{plural:[a-z-]+}.csv", page(export_page.show, brief=False))
    get("/console/import/{plural}", page(import_pages.new))
    post("/console/import/{plural}", upload(import_pages.upload, MOST_BYTES))
    get("/console/imports/{id}", page(import_pages.show))
    get("/console/imports/{id}/faults.csv", page(import_pages.faults_file))
    get("/console/imports/{id}/lines.csv", page(import_pages.lines_file))
    post("/console/imports/{id}", action(import_pages.start))
    post("/console/imports/{id}/cancel", action(import_pages.cancel))

    get("/console/keys", page(api_keys.index))
    post("/console/keys", action(api_keys.create))
    post("/console/keys/mcp", action(api_keys.allow))
    get("/console/keys/{id}/revoke", page(api_keys.revoke_page))
    post("/console/keys/{id}/revoke", action(api_keys.revoke))

    get("/console/audit", page(audit.index))
    get("/console/audit/changes", page(audit.changes))
    get(checkpoints.PATH, page(checkpoints.index))
    post(checkpoints.PATH, action(checkpoints.make))
    get(checkpoints.PATH + "/{number:[0-9]{1,18}}.txt", page(checkpoints.file))

    get("/console/account", page(profile.show))
    post("/console/account", action(profile.save))
    get("/console/account/password", page(password.show))
    post("/console/account/password", action(password.change))
    get("/console/account/email", page(email.show))
    post("/console/account/email", action(email.change))
    get(two_factor_pages.PATH, page(two_factor_pages.show, enrolling=True))
    post(two_factor_pages.PATH, action(two_factor_pages.confirm, enrolling=True))
    post(f"{two_factor_pages.PATH}/start", action(two_factor_pages.start, enrolling=True))
    post(f"{two_factor_pages.PATH}/stop", action(two_factor_pages.stop, enrolling=True))
    post(f"{two_factor_pages.PATH}/codes", action(two_factor_pages.renew))
    post(f"{two_factor_pages.PATH}/end", action(two_factor_pages.end))
    post("/console/account/sessions/{id}/end", action(login.end_session))
    post("/console/account/sign-out-everywhere", action(login.end_all))

    pages = {
        resource.canonical
        for resource in router.resources()
        if any(route.method == "GET" for route in resource)
    }
    for path in forms:
        if path not in pages:
            router.add_route("*", path, page(form_only, public=True))
    # Also one with the end of a line in it.
    router.add_route("*", "/console/{rest:(?s:.*)}", page(nowhere, public=True))
