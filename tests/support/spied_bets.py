"""Which runs taught a bettor, and which it was judged by: no block may be both."""


def spy(monkeypatch, bettor, key):
    """Watch an anytime audit's class; return what taught each of its choices, and (taught, judged) of each block.

    `key` tells one block of runs from others.
    """
    taught, judged = {}, []
    choose, scorer = bettor.choose, bettor.scorer

    def choosing(self, pair, index, past):
        choice = choose(self, pair, index, past)
        taught[id(choice)] = choice, {key(block) for block in past}  # a choice that is kept has an id of its own
        return choice

    def scoring(self, choice):
        score = scorer(self, choice)

        def spied(block):
            scores = score(block)
            judged.append((taught[id(choice)][1], key(scores.played)))
            return scores

        return spied

    monkeypatch.setattr(bettor, "choose", choosing)
    monkeypatch.setattr(bettor, "scorer", scoring)
    return taught, judged
