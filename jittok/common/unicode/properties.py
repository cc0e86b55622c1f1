"""Characters by the names that regular expressions have for them: scripts, general categories, properties and POSIX
classes, as Oniguruma (tokenizers) and the regex crate (tiktoken) know them, of Unicode 16.0.

Only scripts and what no other table gives are stored. The rest follows from these, and was found equal to the engines'
answers over all code points.
"""

from __future__ import annotations

from functools import cache

from jittok.common.unicode.libraries import ranges, table
from jittok.common.unicode.sets import LAST, Ranges, complement, merged, without

_SCRIPTS = """
adlam/adlm ahom anatolianhieroglyphs/hluw arabic/arab armenian/armn avestan/avst balinese/bali bamum/bamu
bassavah/bass batak/batk bengali/beng bhaiksuki/bhks bopomofo/bopo brahmi/brah braille/brai buginese/bugi
buhid/buhd canadianaboriginal/cans carian/cari caucasianalbanian/aghb chakma/cakm cham cherokee/cher
chorasmian/chrs common/zyyy coptic/copt/qaac cuneiform/xsux cypriot/cprt cyprominoan/cpmn cyrillic/cyrl
deseret/dsrt devanagari/deva divesakuru/diak dogra/dogr duployan/dupl egyptianhieroglyphs/egyp elbasan/elba
elymaic/elym ethiopic/ethi garay/gara georgian/geor glagolitic/glag gothic/goth grantha/gran greek/grek
gujarati/gujr gunjalagondi/gong gurmukhi/guru gurungkhema/gukh han/hani hangul/hang hanifirohingya/rohg
hanunoo/hano hatran/hatr hebrew/hebr hiragana/hira imperialaramaic/armi inherited/zinh/qaai
inscriptionalpahlavi/phli inscriptionalparthian/prti javanese/java kaithi/kthi kannada/knda katakana/kana
kawi kayahli/kali kharoshthi/khar khitansmallscript/kits khmer/khmr khojki/khoj khudawadi/sind kiratrai/krai
lao/laoo latin/latn lepcha/lepc limbu/limb lineara/lina linearb/linb lisu lycian/lyci lydian/lydi
mahajani/mahj makasar/maka malayalam/mlym mandaic/mand manichaean/mani marchen/marc masaramgondi/gonm
medefaidrin/medf meeteimayek/mtei mendekikakui/mend meroiticcursive/merc meroitichieroglyphs/mero miao/plrd
modi mongolian/mong mro/mroo multani/mult myanmar/mymr nabataean/nbat nagmundari/nagm nandinagari/nand newa
newtailue/talu nko/nkoo nushu/nshu nyiakengpuachuehmong/hmnp ogham/ogam olchiki/olck oldhungarian/hung
olditalic/ital oldnortharabian/narb oldpermic/perm oldpersian/xpeo oldsogdian/sogo oldsoutharabian/sarb
oldturkic/orkh olduyghur/ougr olonal/onao oriya/orya osage/osge osmanya/osma pahawhhmong/hmng palmyrene/palm
paucinhau/pauc phagspa/phag phoenician/phnx psalterpahlavi/phlp rejang/rjng runic/runr samaritan/samr
saurashtra/saur sharada/shrd shavian/shaw siddham/sidd signwriting/sgnw sinhala/sinh sogdian/sogd
sorasompeng/sora soyombo/soyo sundanese/sund sunuwar/sunu sylotinagri/sylo syriac/syrc tagalog/tglg
tagbanwa/tagb taile/tale taitham/lana taiviet/tavt takri/takr tamil/taml tangsa/tnsa tangut/tang telugu/telu
thaana/thaa thai tibetan/tibt tifinagh/tfng tirhuta/tirh todhri/todr toto tulutigalari/tutg ugaritic/ugar
vai/vaii vithkuqi/vith wancho/wcho warangciti/wara yezidi/yezi yi/yiii zanabazarsquare/zanb
"""
SCRIPTS = [names.split("/") for names in _SCRIPTS.split()]
"""Each script's names, as `loose` writes them. The table of scripts has their numbers in this list."""

CATEGORIES = {
    "letter": "L", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt", "modifierletter": "Lm",
    "otherletter": "Lo", "number": "N", "decimalnumber": "Nd", "letternumber": "Nl", "othernumber": "No", "mark": "M",
    "combiningmark": "M", "nonspacingmark": "Mn", "spacingmark": "Mc", "enclosingmark": "Me", "punctuation": "P",
    "connectorpunctuation": "Pc", "dashpunctuation": "Pd", "openpunctuation": "Ps", "closepunctuation": "Pe",
    "initialpunctuation": "Pi", "finalpunctuation": "Pf", "otherpunctuation": "Po", "symbol": "S", "mathsymbol": "Sm",
    "currencysymbol": "Sc", "modifiersymbol": "Sk", "othersymbol": "So", "separator": "Z", "spaceseparator": "Zs",
    "lineseparator": "Zl", "paragraphseparator": "Zp", "other": "C", "control": "Cc", "format": "Cf",
}  # fmt: skip
"""Long names of general categories: the class of `libraries`."""
_SHORT = {name.lower(): name for name in CATEGORIES.values()}
_STORED = {
    "emoji": "emoji", "emojipresentation": "emoji_presentation", "epres": "emoji_presentation",
    "extendedpictographic": "extended_pictographic", "extpict": "extended_pictographic",
    "ideographic": "ideographic", "ideo": "ideographic", "whitespace": "space", "wspace": "space", "space": "space",
    "digit": "Nd", "punct": "P",
}  # fmt: skip
"""Properties that are sets or classes of `libraries`."""
PRIVATE: Ranges = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
SURROGATES: Ranges = ((0xD800, 0xDFFF),)
ASCII: Ranges = ((0, 0x7F),)
HEXADECIMAL: Ranges = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
POSIX = (
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "word", "xdigit",
)  # fmt: skip
"""Names of POSIX classes."""


def loose(name: str) -> str:
    """A name without what engines do not look at: case, spaces, hyphens and underlines."""
    return name.replace(" ", "").replace("-", "").replace("_", "").lower()


@cache
def _scripts() -> dict[str, Ranges]:
    found = [list[tuple[int, int]]() for _ in SCRIPTS]
    columns = (table(f"script_{name}").tolist() for name in ("first", "stop", "number"))
    for first, stop, number in zip(*columns, strict=True):
        found[number].append((first, stop - 1))
    return {name: tuple(found[number]) for number, names in enumerate(SCRIPTS) for name in names}


def _union(*parts: Ranges) -> Ranges:
    return merged([each for part in parts for each in part])


@cache
def property_ranges(name: str) -> Ranges | None:
    """The characters of `\\p{name}`; None for a name that is not known. Unlike `[:punct:]`,
    `\\p{punct}` has no symbols."""
    key = loose(name)
    if found := _SHORT.get(key) or CATEGORIES.get(key) or _STORED.get(key):
        return ranges(found)
    if key in ("alphabetic", "alpha"):
        return _union(ranges("L"), ranges("Nl"), ranges("other_alphabetic"))
    if key in ("uppercase", "upper", "lowercase", "lower"):
        return _union(ranges("Lu" if key[0] == "u" else "Ll"), ranges(f"other_{key[:5]}case"))
    if key in ("any", "ascii"):
        return ((0, LAST),) if key == "any" else ASCII
    if key in ("privateuse", "co"):
        return PRIVATE
    if key in ("unassigned", "cn", "assigned"):
        unassigned = without(ranges("C"), ranges("Cc"), ranges("Cf"), PRIVATE, SURROGATES)
        return complement(unassigned) if key == "assigned" else unassigned
    if key in ("casedletter", "lc"):
        return _union(ranges("Lu"), ranges("Ll"), ranges("Lt"))
    return posix_ranges(key) if key in ("alnum", "blank", "cntrl") else _scripts().get(key)


@cache
def posix_ranges(name: str) -> Ranges | None:
    """The characters of `[:name:]` in Oniguruma; None for a name that is not known."""
    if name not in POSIX:
        return None
    if name == "alnum":
        return _union(property_ranges("alphabetic") or (), ranges("Nd"))
    if name == "blank":
        return _union(ranges("Zs"), ((9, 9),))
    if name in ("cntrl", "digit"):
        return ranges("Cc" if name == "cntrl" else "Nd")
    if name in ("graph", "print"):
        visible = without(property_ranges("assigned") or (), ranges("space"), ranges("Cc"), SURROGATES)
        return _union(visible, ranges("Zs")) if name == "print" else visible
    if name == "punct":
        return _union(ranges("P"), ranges("S"))
    if name in ("word", "space"):
        return ranges(name)
    return HEXADECIMAL if name == "xdigit" else property_ranges(name)
