"""Shared by ecosystems without a billing API, which construct their bill from rates and measured quantities."""
