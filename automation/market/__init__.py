"""The market: what AWS sells, what is bought, and the only function that spends money.

offers.py        what could be bought, in every enabled region
reservations.py  what is bought: by session tag in every state, and by id
purchase.py      the purchase: guards, written intent, one attempt, look-up before and after
"""
