"""Events as sentences, and the ways to send them: signed webhooks, chats and mails."""
