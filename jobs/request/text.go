package request

import (
	"fmt"
	"strings"
	"time"

	"msgexchange/jobs/message"
)

// Text writes the request as it goes into the mailbox (dictionary 10): signed by sndr, made at r.RegisteredAt, times in zone.
func (r Request) Text(sndr string, zone *time.Location) string {
	kind, body := r.Kind, ""
	if rtype, ok := ListOf(kind); ok {
		body = "<RQRD><RTYP>" + rtype + "</RTYP></RQRD>"
	} else {
		body = "<RQFD><STDB>" + wireTime(r.Window.From, zone) + "</STDB><STDE>" + wireTime(r.Window.To, zone) + "</STDE></RQFD>"
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><MSG xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="unisysaodbsis.xsd">`+
		`<META><SNDR>%s</SNDR><SEQN>%06d</SEQN><DTTM>%s</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		sndr, r.SEQN, r.RegisteredAt.In(zone).Format("20060102150405"), typeOf(kind), stypOf(kind), body)
}

func typeOf(k message.Kind) string { t, _, _ := strings.Cut(string(k), "-"); return t }
func stypOf(k message.Kind) string { _, s, _ := strings.Cut(string(k), "-"); return s }

func wireTime(t time.Time, zone *time.Location) string {
	return strings.ToUpper(t.In(zone).Format("02Jan061504"))
}
