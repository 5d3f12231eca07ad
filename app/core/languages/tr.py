"""Turkish."""

from __future__ import annotations

from app.core.languages.language import Language

TURKISH = Language(
    code="tr",
    name="Turkish",
    stemmer="turkish",
    function_words=(
        "ve veya ya da de ki ile için gibi kadar göre sonra önce bir bu şu o bunlar şunlar onlar"
        " ben sen biz siz ne neden niçin nasıl nerede nereye nereden kim kimin kime hangi hangisi"
        " kaç mi mı mu mü değil var yok olan olarak olduğu olduğunu oldu olur idi ise ama fakat"
        " ancak çok daha en her hiç bazı tüm bütün tarafından arasında üzerinde içinde zaman ilk"
    ),
    abbreviations="dr prof doç örn vb vs bkz yy m.ö m.s",
    refusal="Eldeki belgelerde bunu yanıtlamak için yeterli bilgi yok.",
    greeting="Merhaba! Kitaplıklarındaki belgeler hakkında ne istersen sor.",
    welcome="Rica ederim! Başka sorun varsa çekinme.",
    what_is="{} nedir?",
    greetings=(r"merhaba|selam|gunaydin|iyi (?:gunler|aksamlar|geceler)|nasilsin|hosca kal",),
    thanks=(r"(?:cok )?tesekkur(?:ler| ederim| ederiz)?|sag ?ol",),
)
