"""Collects measured candidates of many dispatches, which models and strategies are judged with."""
