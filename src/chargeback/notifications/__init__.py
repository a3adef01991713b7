"""What has happened, in a sentence, and the ways to tell it: signed webhooks, chats and mails."""
