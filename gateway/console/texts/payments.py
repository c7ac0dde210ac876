"""The texts about payments: of orders, and of a store's payment secret."""

SENTENCES = {
    # Orders
    "order.pay": "Mark paid",
    "order.pay_title": "Mark this order as paid?",
    "order.pay_lead": "Its invoice is paid and its deal is won. This cannot be undone.",
    "order.pay_method": "Method of payment",
    "order.pay_reference": "Reference",
    "order.pay_reference_hint": "For example the id of the Pix transfer in your bank's statement.",
    "order.linked": "Records",
    "order.copy": "Copy the address of the record: {record}",
    "order.late": "Paid after the order had ended",
    "order.late_lead": "Pay the money back, or deliver by hand and tell the buyer. The order and"
    " its items stay as they are.",
    "order.late_tag": "Late payment",
    "order.settle": "Mark as handled",
    "store.orders": "Orders",
    "orders.every": "All orders",
    "orders.select": "Select orders",
    "orders.select_one": "Select {number}",
    "orders.select_help": "Only pending orders can be selected.",
    "orders.pay": "Mark paid",
    "orders.cancel": "Cancel orders",
    "orders.pay_title": "Mark these orders as paid? ({count})",
    "orders.pay_lead": "Their invoices are paid and their deals are won. This cannot be undone.",
    "orders.cancel_title": "Cancel these orders? ({count})",
    "orders.cancel_lead": "Their invoices are canceled, their deals are lost, and their items are"
    " for sale again. This cannot be undone.",
    "orders.sum": "Sum:",
    "orders.back": "Back to the list",
    # Methods of payment
    "option.pix": "Pix",
    "option.boleto": "Boleto",
    "option.card": "Card",
    "option.transfer": "Bank transfer",
    "option.cash": "Cash",
    # The secret of a store
    "payment.title": "Payment secret",
    "payment.label": "Payment secret",
    "payment.lead": "The adapter of your payment provider reports payments with this secret, and"
    " checks the tokens of orders with it.",
    "payment.callback": "It reports to",
    "payment.copy_callback": "Copy the path of the callback",
    "payment.create": "Create payment secret",
    "payment.copy": "Copy the new payment secret now",
    "payment.once": "The secret is shown only once.",
    "payment.rotate": "To replace the secret, create a new one, give it to the adapter, and"
    " activate it. The replaced one is accepted for {hours} hours more.",
    "payment.staged": "A new secret is staged: reports that it signs are accepted. Give it to the"
    " adapter, then activate it; tokens of orders are signed with it from then on.",
    "payment.overlap": "Reports signed with the replaced secret are accepted until",
    "payment.back": "Back to the store",
    # Labels of fields
    "field.paymentMethods": "Methods of payment",
    "field.checkoutUrl": "Page that takes cards",
    "field.latePaymentAt": "Late payment",
    # Results and refusals
    "done.order_paid": "Order marked as paid.",
    "done.order_settled": "Marked as handled. The invoice keeps the payment.",
    "done.orders_paid": "Orders marked as paid.",
    "done.orders_paid_some": "Done. Orders that were not pending any more stay as they were.",
    "done.orders_canceled": "Orders canceled.",
    "done.orders_canceled_some": "Done. Orders that were not pending any more stay as they were.",
    "done.orders_none": "Select at least one order.",
    "done.payment_secret": "Payment secret created.",
    "error.order_not_pending": "This order is not pending any more, so it cannot be marked as"
    " paid.",
}
