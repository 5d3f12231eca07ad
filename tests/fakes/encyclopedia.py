"""Short articles, written for tests, about what evaluation/wiki_public_bench.json asks."""

ARTICLES = {
    "Eiffel Tower": "The Eiffel Tower stands in Paris. The company of the engineer Gustave Eiffel"
    " designed and built it for 1889.",
    "Alan Turing": "Alan Turing was a mathematician. In the Second World War he worked as a"
    " codebreaker at Bletchley Park.",
    "Marie Curie": "Marie Curie studied radioactivity. She named the element polonium after her"
    " native country, Poland.",
    "Mount Everest": "Mount Everest is the highest mountain. Edmund Hillary and Tenzing Norgay"
    " reached its summit in 1953.",
    "DNA": "DNA carries genes. James Watson and Francis Crick proposed its double helix model in"
    " 1953.",
    "Great Fire of London": "The Great Fire of London began in a bakery in Pudding Lane in 1666"
    " and burned for four days.",
    "Apollo 11": "Apollo 11 brought the first people to the Moon in 1969. It landed in the Sea of"
    " Tranquility.",
    "Moby-Dick": "Moby-Dick is a novel by Herman Melville. Ahab, the captain of the Pequod, hunts"
    " a white whale.",
    "Mona Lisa": "The Mona Lisa is a portrait by Leonardo. In 1911 Vincenzo Peruggia stole it from"
    " the Louvre.",
    "Johannes Gutenberg": "Johannes Gutenberg printed with movable type. He was born in the city"
    " of Mainz.",
    "Great Barrier Reef": "The Great Barrier Reef is the largest coral reef. It lies in the Coral"
    " Sea off Queensland.",
    "Rosetta Stone": "The Rosetta Stone bears a decree in three scripts. The decree was issued for"
    " king Ptolemy V.",
    "Magna Carta": "Magna Carta is a charter of rights. King John agreed to it at Runnymede in"
    " 1215.",
    "Periodic table": "The periodic table orders the elements. The chemist Dmitri Mendeleev"
    " published one in 1869.",
    "Hubble Space Telescope": "The Hubble Space Telescope orbits Earth. Its main mirror is 2.4"
    " metres wide.",
    "Isaac Newton": "Isaac Newton published the laws of motion in the book Principia in 1687.",
    "Black Death": "The Black Death was a plague of the fourteenth century, caused by the"
    " bacterium Yersinia pestis.",
    "Panama Canal": "The Panama Canal joins two oceans. Gatun Lake, an artificial lake, is part of"
    " it.",
    "Aspirin": "Aspirin eases pain and fever. The company Bayer introduced the name in 1899.",
    "Machu Picchu": "Machu Picchu is an Inca citadel. The American explorer Hiram Bingham made it"
    " known in 1911.",
    "Abraham Lincoln": "Abraham Lincoln, the president who freed the slaves of the United States,"
    " was shot and killed in Ford's Theatre.",
    "Achilles": "Achilles was a hero of Troy. His mother had held him by the heel, where alone he"
    " could be wounded.",
    "Aardvark": "The aardvark is an African burrower. By night it digs up nests of insects and"
    " licks up ants and termites.",
    "Albedo": "Albedo is the share of light that a surface throws back. That of fresh snow is .9,"
    " so that white ground stays cold.",
    "Animal Farm": "Animal Farm is a satire in which beasts drive out their master. The pig"
    " Napoleon becomes the tyrant.",
    "Aldous Huxley": "Aldous Huxley, the author of Brave New World, took mescaline, a drug of a"
    " cactus, for The Doors of Perception.",
    "Ampere": "The ampere is the unit of current. It was defined by the pull between two endless"
    " parallel wires a metre apart.",
    "Albert Einstein": "Albert Einstein, a former patent clerk of Bern, received the Nobel Prize in"
    " physics for the photoelectric effect.",
    "Alchemy": "Alchemy hoped that the philosopher's stone would turn lead into gold.",
    "ASCII": "ASCII is a seven-bit code for letters, made in America for teleprinters. It defines"
    " 128 characters.",
    "Ayn Rand": "Ayn Rand was a novelist from Petersburg. Her doctrine, Objectivism, is a"
    " philosophy that praises selfishness.",
    "Aikido": "Aikido is a Japanese fighting art that turns the attacker's own force against him."
    " Morihei Ueshiba created it.",
}
