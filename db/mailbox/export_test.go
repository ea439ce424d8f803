package mailbox

// ForgetSkipLocked makes m believe that its server knows no SKIP LOCKED, as MySQL 5.7 and MariaDB 10.5 do not.
func ForgetSkipLocked(m *Mailbox) { m.noSkip.Store(true) }
