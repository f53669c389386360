package arc

import "github.com/ttmon/ttmon/internal/model"

// Sample is a table in which every word can be told from every other. Its values
// of what the driver shows are those of the reference chip, whose files are known
// as the real driver prints them.
func Sample(arch model.Arch) map[uint16]uint32 {
	words := map[uint16]uint32{
		6: 850, 7: 42, 8: 37, 9: 950<<16 | 700, 10: 110, 11: 45<<16 | 1<<15, // 45.5 °C
		14: 500, 15: 900, 16: 540, 26: 5<<24 | 11<<16, 28: 18<<24 | 11<<16,
		32: 12345, 53: 300, 55: 160, 56: 75, 61: 0xAABBCCDD, 62: 0x11223344, 63: 1350, 64: 300,
	}
	if arch == model.Blackhole {
		blackholeSample(words)
	} else {
		wormholeSample(words)
	}
	return words
}

func wormholeSample(w map[uint16]uint32) {
	w[1], w[2] = 0x01000186, 0x11905001
	w[5], w[12], w[13] = 100, 51<<16, 38<<16|1<<14 // 51 °C, 38.25 °C
	w[63] = 1000
	w[21] = 0x0FFF<<16 | 0xFFFF // channels 12 to 15 are down
	w[22], w[23] = 0x555, 14000
	w[24], w[27], w[29], w[58] = 6<<16|14<<12|3, 129<<24|2<<16, 2<<24|35<<16, 3<<24|2<<16
	w[31], w[41] = 35, 2100<<16|0xFFFF
	w[52], w[54], w[59], w[36] = 1, 71, 0x3FD, 0x3F // 9 rows
}

func blackholeSample(w map[uint16]uint32) {
	w[1], w[2] = 0x00000402, 0x11905001
	w[5], w[12], w[13] = 100, 0, 0
	for i := range uint16(4) {
		w[17+i] = 800 + 50*uint32(i)
		w[42+i] = 0x3C3A_3836 + uint32(i)*0x0101_0101
		w[46+i] = 0x0403_0201 * uint32(i)
	}
	w[49] = 0xFF00_0000 // a counter that has reached its end
	w[21] = 0x3EFF<<16 | 0x3FFF
	w[22], w[23], w[25] = 0x5555_5555, 16000, 2<<16|7
	w[24], w[27], w[29] = 1<<16|5<<12, 1<<24, 19<<16
	w[31], w[41] = 41, 3200
	w[34], w[35], w[36], w[37], w[38], w[40] = 0x3EFB, 0x3FFC, 0xFF, 0xF, 1, 1
	w[50], w[51], w[52], w[54] = 1<<5, 63, 1, 122
	w[60], w[63] = 0, 1350
	w[65], w[66], w[67], w[68] = 1<<16|1350, 4<<16|1100, 0x3, 0x7FF
	w[69], w[70] = 1<<16|4, 0 // limited, by temperature
	w[73], w[74], w[75] = 6, 7, 1
	w[76], w[77] = 12, 25
}
