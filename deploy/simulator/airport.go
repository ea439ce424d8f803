package simulator

import "fmt"

// airport is everything that does not move: who flies, where to, with what, and where it all stands.
type airport struct {
	airlines []airline
	domestic []station
	abroad   []station
	fleet    []aircraft
	stands   []stand
}

// homeCode is the simulated airport's own code in routes.
const homeCode = "CTU"

// airline flies; partners sell its flights under their own numbers.
type airline struct {
	code     string
	sub      string // ALSC, sometimes
	foreign  bool
	partners []string
}

// station is another airport.
type station struct {
	code string
	flin string // D, R or I
	fly  int    // minutes
	name string
}

// aircraft is a type.
type aircraft struct {
	code  string
	seats int
	wide  bool
}

// stand is a parking position. A contact stand has bridges and a gate of its own, a remote one neither.
type stand struct {
	code     string
	terminal string
	wide     bool
	bridges  []string
	gate     string
}

func (s stand) contact() bool { return len(s.bridges) > 0 }

// newAirport equips the airport for so many flights a day.
func newAirport(flights int) airport {
	return airport{airlines: airlines(), domestic: domestic(), abroad: abroad(), fleet: fleet(), stands: stands(flights)}
}

func airlines() []airline {
	return []airline{
		{code: "CA", partners: []string{"ZH", "SC", "TV"}},
		{code: "3U", sub: "3UCD", partners: []string{"MF", "CZ"}},
		{code: "MU", partners: []string{"FM", "HO"}},
		{code: "CZ", partners: []string{"MF", "3U"}},
		{code: "EU"},
		{code: "HU", partners: []string{"JD", "8L"}},
		{code: "ZH", partners: []string{"CA", "TV"}},
		{code: "TV", partners: []string{"CA"}},
		{code: "8L", partners: []string{"HU"}},
		{code: "SC", partners: []string{"CA"}},
		{code: "MF", partners: []string{"CZ"}},
		{code: "HO", partners: []string{"MU"}},
		{code: "GJ"},
		{code: "CX", foreign: true, partners: []string{"CA"}},
		{code: "SQ", foreign: true, partners: []string{"3U"}},
		{code: "NH", foreign: true, partners: []string{"CA"}},
		{code: "QR", foreign: true},
		{code: "ET", foreign: true, partners: []string{"CA"}},
		{code: "KL", foreign: true, partners: []string{"CZ", "MF"}},
	}
}

func domestic() []station {
	return []station{
		{"PEK", "D", 160, "北京"},
		{"PKX", "D", 165, "北京大兴"},
		{"SHA", "D", 170, "上海虹桥"},
		{"PVG", "D", 180, "上海浦东"},
		{"CAN", "D", 140, "广州"},
		{"SZX", "D", 145, "深圳"},
		{"HGH", "D", 165, "杭州"},
		{"NKG", "D", 145, "南京"},
		{"XIY", "D", 85, "西安"},
		{"KMG", "D", 85, "昆明"},
		{"LXA", "D", 130, "拉萨"},
		{"URC", "D", 225, "乌鲁木齐"},
		{"LHW", "D", 90, "兰州"},
		{"XNN", "D", 100, "西宁"},
		{"WUH", "D", 110, "武汉"},
		{"CSX", "D", 110, "长沙"},
		{"TAO", "D", 160, "青岛"},
		{"DLC", "D", 185, "大连"},
		{"HRB", "D", 225, "哈尔滨"},
		{"XMN", "D", 160, "厦门"},
		{"SYX", "D", 150, "三亚"},
		{"HAK", "D", 140, "海口"},
		{"JHG", "D", 105, "西双版纳"},
		{"JZH", "D", 60, "九寨"},
	}
}

func abroad() []station {
	return []station{
		{"HKG", "R", 165, "香港"},
		{"MFM", "R", 160, "澳门"},
		{"TPE", "R", 195, "台北"},
		{"SIN", "I", 285, "新加坡"},
		{"BKK", "I", 195, "曼谷"},
		{"NRT", "I", 290, "东京"},
		{"ICN", "I", 230, "首尔"},
		{"DOH", "I", 450, "多哈"},
		{"ADD", "I", 560, "亚的斯亚贝巴"},
		{"AMS", "I", 640, "阿姆斯特丹"},
		{"KTM", "I", 190, "加德满都"},
	}
}

func fleet() []aircraft {
	return []aircraft{
		{"319", 128, false},
		{"320", 158, false},
		{"32N", 186, false},
		{"321", 200, false},
		{"738", 164, false},
		{"E90", 98, false},
		{"788", 267, true},
		{"333", 301, true},
		{"359", 314, true},
	}
}

// stands are wide and narrow contact stands at both terminals, and an apron of remote ones that grows with the traffic.
func stands(flights int) []stand {
	var all []stand
	contact := func(terminal string, from, to int, wide bool) {
		for n := from; n <= to; n++ {
			code := fmt.Sprint(n)
			s := stand{code: code, terminal: terminal, wide: wide, bridges: []string{"B" + code}, gate: fmt.Sprintf("G%02d", len(all)+1)}
			if wide {
				s.bridges = []string{"B" + code + "A", "B" + code + "B"}
			}
			all = append(all, s)
		}
	}
	contact("T1", 111, 118, true)
	contact("T1", 131, 136, false)
	contact("T2", 201, 206, true)
	contact("T2", 207, 232, false)
	const leastRemote, flightsPerRemote = 40, 12
	for n := range max(leastRemote, flights/flightsPerRemote) {
		all = append(all, stand{code: fmt.Sprint(301 + n), terminal: "T2", wide: n%4 == 0})
	}
	return all
}

// The organisations that handle flights, by their OGID.
func passengerAgents() []int { return []int{310041, 310042, 310043} }
func rampAgents() []int      { return []int{310022, 310023} }
func technicians() []int     { return []int{310063, 310064} }

func runways() []string { return []string{"02L", "02R", "20L", "20R"} }

// delayCause is a code of DLYL with what the sender writes beside it; %s is the other station.
type delayCause struct{ code, text string }

func delayCauses() []delayCause {
	return []delayCause{
		{"AT", "流量控制"}, {"WR", "%s机场天气低于标准"}, {"WR", "航路雷雨 & 绕飞"}, {"AT", "%s方向空军活动"}, {"RA", "飞机机务检查"}, {"RA", "旅客原因，等待<2>名联程旅客"},
	}
}

// lateInbound is the cause of a departure whose aircraft came late.
func lateInbound() delayCause { return delayCause{"RA", "前序航班晚到"} }

func remarks() []string {
	return []string{
		"机组首次执行该航线，请提前十分钟开放登机", "行李转盘改用备用通道，旅客请按广播提示", "团队旅客42人，请安排专用柜台", "VIP要求靠近头等舱登机口",
		"Crew change on stand", "无陪儿童3名，地服交接", "担架旅客1名，需升降平台车", "特殊货物：活体海鲜 & 鲜花",
	}
}
