"""The texts of the mails to buyers, in Portuguese and in English, and their amounts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.domain.sales.order_mails import Kind

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def _reais(centavos: int) -> str:
    return "R$ " + f"{centavos // 100:,}".replace(",", ".") + f",{centavos % 100:02d}"


def _brl(centavos: int) -> str:
    return f"R${centavos // 100:,}.{centavos % 100:02d}"


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of the mails in one language."""

    money: Callable[[int], str]
    """Shows an amount in centavos."""
    titles: Mapping[Kind, str]
    opening: Mapping[Kind, tuple[str, ...]]
    free_title: str
    free_opening: str
    hello: str
    hello_name: str
    pay_pix: str
    pay_other: str
    pix_code: str
    lasts: str
    link: str
    link_warning: str
    not_you: str
    items: str
    more_items: str
    subtotal: str
    discount: str
    shipping: str
    free: str
    total: str
    footer: str
    date: str
    time: str
    brasilia: str
    methods: Mapping[str, str]


PORTUGUESE = Texts(
    money=_reais,
    titles={
        "order_received": "Recebemos seu pedido {number}",
        "order_paid": "Pagamento confirmado: pedido {number}",
        "order_canceled": "Pedido {number} cancelado",
        "order_expired": "O prazo para pagar o pedido {number} terminou",
    },
    opening={
        "order_received": ("Obrigado pela compra! Recebemos seu pedido {number}.",),
        "order_paid": ("Recebemos o pagamento do seu pedido {number}. Obrigado!",),
        "order_canceled": (
            "Seu pedido {number} foi cancelado.",
            "Não faça o pagamento deste pedido. Se você já pagou, entre em contato com a loja.",
        ),
        "order_expired": (
            "Não recebemos o pagamento do seu pedido {number} dentro do prazo, por isso ele "
            "expirou.",
            "Não use mais os dados de pagamento deste pedido. Se você já pagou, entre em contato "
            "com a loja. Se ainda quiser os produtos, é só fazer um novo pedido.",
        ),
    },
    free_title="Pedido {number} confirmado",
    free_opening="Seu pedido {number} está confirmado. Obrigado!",
    hello="Olá!",
    hello_name="Olá, {name}!",
    pay_pix="Para pagar {total} com Pix, copie o código abaixo e cole no aplicativo do seu banco, "
    "na opção Pix Copia e Cola.",
    pay_other="Forma de pagamento: {method}.",
    pix_code="Código Pix",
    lasts="Pague até {time}. Depois desse prazo, o pedido expira.",
    link="Ver meu pedido",
    link_warning="Não compartilhe o link do pedido: quem tem o link vê os dados da compra.",
    not_you="Se não foi você que fez este pedido, ignore este e-mail. Sem o pagamento, o pedido "
    "expira e nada é cobrado.",
    items="Itens do pedido",
    more_items="e mais {count}",
    subtotal="Subtotal",
    discount="Desconto",
    shipping="Frete",
    free="Grátis",
    total="Total",
    footer="Você recebeu este e-mail porque este endereço foi informado em um pedido na loja "
    "{store} ({hostname}).",
    date="{day:02d}/{month:02d}/{year}",
    time="{date} às {time} ({zone})",
    brasilia="horário de Brasília",
    methods={
        "pix": "Pix", "boleto": "boleto", "card": "cartão", "transfer": "transferência",
        "cash": "dinheiro",
    },
)  # fmt: skip
ENGLISH = Texts(
    money=_brl,
    titles={
        "order_received": "We received your order {number}",
        "order_paid": "Payment confirmed: order {number}",
        "order_canceled": "Order {number} canceled",
        "order_expired": "The time to pay for order {number} is over",
    },
    opening={
        "order_received": ("Thank you for your purchase! We received your order {number}.",),
        "order_paid": ("We received the payment for your order {number}. Thank you!",),
        "order_canceled": (
            "Your order {number} was canceled.",
            "Please do not pay for this order. If you already paid, contact the store.",
        ),
        "order_expired": (
            "We did not receive the payment for your order {number} in time, so it expired.",
            "Do not use the payment details of this order any more. If you already paid, contact "
            "the store. If you still want the products, place a new order.",
        ),
    },
    free_title="Order {number} confirmed",
    free_opening="Your order {number} is confirmed. Thank you!",
    hello="Hello!",
    hello_name="Hello, {name}!",
    pay_pix="To pay {total} with Pix, copy the code below and paste it into your bank's app, under "
    "Pix Copia e Cola.",
    pay_other="Payment method: {method}.",
    pix_code="Pix code",
    lasts="Pay by {time}. After that the order expires.",
    link="View my order",
    link_warning="Do not share the link to the order: whoever has it can see your purchase.",
    not_you="If you did not place this order, ignore this email. Without a payment the order "
    "expires at no cost.",
    items="Items",
    more_items="and {count} more",
    subtotal="Subtotal",
    discount="Discount",
    shipping="Shipping",
    free="Free",
    total="Total",
    footer="You received this email because this address was given for an order at the store "
    "{store} ({hostname}).",
    date="{name} {day}, {year}",
    time="{date} at {time} ({zone})",
    brasilia="Brasília time",
    methods={
        "pix": "Pix", "boleto": "boleto", "card": "card", "transfer": "bank transfer",
        "cash": "cash",
    },
)  # fmt: skip
LANGUAGES: Mapping[str, Texts] = {"pt-BR": PORTUGUESE, "en": ENGLISH}
