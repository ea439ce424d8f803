package sis

// schdKinds are the schedule messages. DEL is left out on purpose: no sample, and the design does not have it.
func schdKinds() []Kind {
	return []Kind{
		{TYPE: TypeSCHD, STYP: "DNLD", Mode: Upsert, Meaning: "schedule, normally of a whole day"},
		{TYPE: TypeSCHD, STYP: "RESP", Mode: Upsert, Answer: true, Meaning: "schedule as an answer to RQFD", Rules: "only with an open request"},
		{TYPE: TypeSCHD, STYP: "ADFT", Mode: Upsert, Meaning: "flights added or changed after the schedule went out"},
	}
}
