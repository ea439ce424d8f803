package flight

// listLayout says how the entries of a list are written in JSON.
type listLayout struct {
	Name     string
	Key      string // the member that holds the entry's key
	Numbered bool   // the key is written as a number
	Fields   []string
}

func listLayouts() []listLayout {
	return []listLayout{
		{"rout", "rtno", true, []string{"apcd", "scat", "scdt"}},
		{"chdt", "chno", true, []string{"chut", "ccls", "pcbt", "pcet", "cbtm", "cetm", "ctyp"}},
		{"gtdt", "gtno", true, []string{"gate", "pgot", "pgct", "gotm", "gctm", "gtyp"}},
		{"psdt", "psno", true, []string{"psst", "stst", "stet"}},
		{"ckdt", "ckno", true, []string{"chkc", "ccls", "pcot", "pcct", "cotm", "cctm", "ctyp"}},
		{"dely", "code", false, []string{"strt", "dura", "text"}},
		{"cldt", "clno", true, []string{"belt", "bcls", "pcot", "pcct", "fbag", "lbag", "btyp"}},
		{"chot", "csno", true, []string{"chtm", "chid", "chst"}},
		{"abtm", "asno", true, []string{"abdg", "abop", "aotm"}},
		{"srvt", "srtc", false, []string{"srqt", "srst", "sret", "srpr", "sanr", "sarr"}},
		{"vipf", "vpcd", false, []string{"vfes"}},
		{"erut", "rtno", true, []string{"apcd", "scat", "scdt"}},
		{"psht", "pust", false, []string{"pstm", "psid"}},
		{"tipt", "trst", false, []string{"trtm"}},
	}
}

func scalarNames() []string {
	return []string{
		"alcd", "alsc", "flno", "mvin", "sodt", "flty", "flin", "acft", "reno", "taop", "tafl", "taid", "trml", "maxp",
		"csop", "csft", "maid", "estt", "actt", "stnd", "phag", "cncl", "remc", "botm", "lacl", "fint", "appt", "egsr", "egst",
		"fhag", "mhag", "vipp", "vipr", "fdiv.ddes", "fdiv.ddir", "fdiv.text", "fret.reid", "fret.text", "flab.ares",
		"flab.text", "lbno", "lbwt", "paxc", "exsc", "exsr", "ftss", "pedt", "padt", "neat", "naat", "port.o", "port.c",
		"cobt", "tobt", "eobt", "ctot", "iest", "runw",
	}
}
