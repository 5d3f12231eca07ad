"""Japanese."""

from __future__ import annotations

from app.core.languages.language import Language

JAPANESE = Language(
    code="ja",
    name="Japanese",
    letters="\u3040-\u30ff",
    function_words=(
        "です ます ました でした ている いる ある する した から まで など ため もの"
        " こと という とは ですか ますか 何です どの どこ いつ だれ なに なぜ どのよう"
        " どれ いくつ"
    ),
    refusal="用意された文書には、それに答えるための情報が足りません。",
    greeting="こんにちは！ライブラリの文書について何でも聞いてください。",
    welcome="どういたしまして！ほかにも知りたいことがあれば聞いてください。",
    what_is="{}とは何ですか？",
    greetings=(r"こんにちは|こんばんは|おはよう(?:ございます)?|はじめまして|さようなら",),
    thanks=(r"ありがとう(?:ございます|ございました)?|どうも",),
)
