"""What ecosystems without a billing API share: they construct their bill from rates and measured quantities."""
