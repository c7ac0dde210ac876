"""Draws the pictures of the demo's products as SVG."""

SHAPES = {
    "bag": (
        '<path d="M130 60h140l14 40v150a14 14 0 0 1-14 14H130a14 14 0 0 1-14-14V100z" fill="{a}"/>'
        '<path d="M130 60h140l14 40H116z" fill="{b}"/><rect x="146" y="140" width="108" height="80"'
        ' rx="8" fill="#fff8ee"/><ellipse cx="200" cy="180" rx="18" ry="26" fill="{b}"/>'
        '<path d="M200 156c-8 16 8 32 0 48" stroke="#fff8ee" stroke-width="4" fill="none"/>'
    ),
    "tin": (
        '<rect x="130" y="90" width="140" height="170" rx="14" fill="{a}"/>'
        '<rect x="122" y="66" width="156" height="36" rx="10" fill="{b}"/>'
        '<circle cx="200" cy="180" r="42" fill="#fff8ee"/>'
        '<path d="M200 206c-30-10-26-42 0-54 26 12 30 44 0 54zm0 0v-40" fill="{a}"'
        ' stroke="{b}" stroke-width="4"/>'
    ),
    "mug": (
        '<path d="M120 110h140v110a34 34 0 0 1-34 34h-72a34 34 0 0 1-34-34z" fill="{a}"/>'
        '<path d="M260 134h22a30 30 0 0 1 0 76h-22" fill="none" stroke="{a}" stroke-width="18"/>'
        '<path d="M160 88c-12-16 12-24 0-42m40 42c-12-16 12-24 0-42" fill="none" stroke="{b}"'
        ' stroke-width="7" stroke-linecap="round"/>'
    ),
    "kettle": (
        '<path d="M130 130h110l26 116a14 14 0 0 1-14 18H118a14 14 0 0 1-14-18z" fill="{a}"/>'
        '<path d="M246 214c54 0 36-96 74-112" fill="none" stroke="{a}" stroke-width="14"/>'
        '<path d="M112 190c-52-8-52-92 26-92" fill="none" stroke="{b}" stroke-width="14"/>'
        '<rect x="140" y="108" width="90" height="22" rx="8" fill="{b}"/>'
        '<circle cx="185" cy="98" r="12" fill="{b}"/>'
    ),
    "grinder": (
        '<rect x="126" y="160" width="148" height="104" rx="10" fill="{a}"/>'
        '<path d="M146 160l12-60h84l12 60z" fill="{b}"/>'
        '<path d="M200 100V62h70" fill="none" stroke="{b}" stroke-width="12"'
        ' stroke-linecap="round"/><circle cx="276" cy="62" r="13" fill="{a}"/>'
        '<rect x="152" y="196" width="96" height="44" rx="6" fill="#fff8ee"/>'
        '<circle cx="200" cy="218" r="7" fill="{b}"/>'
    ),
    "dripper": (
        '<path d="M120 70h160l-48 90h-64z" fill="{a}"/>'
        '<rect x="146" y="160" width="108" height="14" rx="7" fill="{b}"/>'
        '<path d="M150 182h100l18 68a14 14 0 0 1-14 16H146a14 14 0 0 1-14-16z" fill="#fff8ee"'
        ' stroke="{b}" stroke-width="8"/><path d="M142 226h116l8 34H134z" fill="{b}"/>'
    ),
    "press": (
        '<rect x="142" y="96" width="116" height="164" rx="12" fill="#fff8ee" stroke="{b}"'
        ' stroke-width="10"/><rect x="150" y="170" width="100" height="82" rx="6" fill="{a}"/>'
        '<rect x="134" y="84" width="132" height="20" rx="8" fill="{b}"/>'
        '<path d="M200 84V46m-22 0h44" stroke="{b}" stroke-width="12" stroke-linecap="round"/>'
        '<path d="M264 130h30v84h-30" fill="none" stroke="{b}" stroke-width="12"/>'
    ),
    "box": (
        '<path d="M110 120l90-36 90 36v112l-90 36-90-36z" fill="{a}"/>'
        '<path d="M110 120l90 36 90-36-90-36z" fill="{b}"/>'
        '<path d="M200 156v112" stroke="#fff8ee" stroke-width="5"/>'
    ),
    "card": (
        '<rect x="96" y="100" width="208" height="130" rx="14" fill="{a}"/>'
        '<path d="M140 100v130M96 150h208" stroke="{b}" stroke-width="12"/>'
        '<path d="M140 150c-40-10-30-50 0-20 30-30 40 10 0 20z" fill="{b}"/>'
    ),
}
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<circle cx="16" cy="16" r="16" fill="#7a3e12"/>'
    '<ellipse cx="16" cy="16" rx="7" ry="10" fill="#f6e3cf" transform="rotate(30 16 16)"/>'
    '<path d="M20 8c-5 6-3 10-8 16" fill="none" stroke="#7a3e12" stroke-width="2"/></svg>'
)


def draw(shape: str, main: str, second: str) -> str:
    """Return the picture of a product: one of SHAPES in two colours."""
    inside = SHAPES[shape].format(a=main, b=second)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="400" height="300">'
        f'<rect width="400" height="300" fill="#efe4d5"/>'
        f'<ellipse cx="200" cy="268" rx="120" ry="12" fill="#dccbb5"/>{inside}</svg>'
    )
