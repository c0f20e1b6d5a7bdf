"""Sizes and regret bounds that papers print, where their entries have no room for them."""
