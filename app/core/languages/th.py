"""Thai."""

from __future__ import annotations

from app.core.languages.language import Language

THAI = Language(
    code="th",
    name="Thai",
    letters="\u0e00-\u0e7f",
    function_words="อะไร เท่าไร เท่าใด อย่างไร เมื่อใด เมื่อไร ทำไม ใคร",
    refusal="เอกสารที่มีอยู่ไม่มีข้อมูลเพียงพอที่จะตอบคำถามนี้",
    greeting="สวัสดี! ถามอะไรก็ได้เกี่ยวกับเอกสารในคลังของคุณ",
    welcome="ยินดี! ถามต่อได้เลยหากอยากทราบเพิ่มเติม",
    what_is="{}คืออะไร",
    greetings=(r"สวัสดี(?:ครับ|ค่ะ)?|ลาก่อน",),
    thanks=(r"ขอบคุณ(?:ครับ|ค่ะ|มาก)?",),
)
