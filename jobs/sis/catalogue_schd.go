package sis

// onlyOpen is the rule of answers.
const onlyOpen = "only with an open request"

// schdKinds are the schedule messages. DEL is left out on purpose: no sample, and the design does not have it.
func schdKinds() []Kind {
	return []Kind{
		{TYPE: TypeSCHD, STYP: "DNLD", Mode: Upsert, Meaning: "schedule, normally of a whole day"},
		{TYPE: TypeSCHD, STYP: "RESP", Mode: Upsert, Answers: ScheduleRequest, Meaning: "schedule as an answer to RQFD", Rules: onlyOpen},
		{TYPE: TypeSCHD, STYP: "ADFT", Mode: Upsert, Meaning: "flights added or changed after the schedule went out"},
	}
}
