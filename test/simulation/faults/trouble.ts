/**
 * Schedules the faults of a seed that occur at certain times: machines die, pause and lose their
 * connections, workers lose their connections, clocks jump, and stores lose data.
 */
import type { Simulation } from '../simulation.ts'
import type { FaultKind } from './weather.ts'

/**
 * Schedules the faults of a seed.
 * @param end milliseconds until the faults end.
 */
export function makeTrouble(sim: Simulation, end: number): void {
  const { weather, timeline } = sim
  const plan = (kind: FaultKind, most: number, happen: () => void) => {
    if (!weather.kinds.has(kind)) return
    const dice = weather.dice(kind)
    for (let i = 1 + dice.below(most); i > 0; i--)
      timeline.after(dice.between(200, end), () => {
        if (!weather.calm) happen()
      })
  }
  const victim = (kind: FaultKind) =>
    weather
      .dice(kind)
      .pick(sim.machines.filter((machine) => machine.alive && !machine.paused && !machine.cut))

  plan('kill', 4, () => {
    const machine = victim('kill')
    if (!machine) return
    const dice = weather.dice('kill')
    if (dice.chance(0.2)) {
      sim.note(() => `${machine.name} is asked to stop`)
      machine.enter(() => void machine.stop())
    } else machine.fuse = 1 + dice.below(dice.chance(0.5) ? 10 : 120)
  })
  plan('pause', 3, () =>
    victim('pause')?.pause(
      weather.dice('pause').chance(0.3)
        ? weather.dice('pause').between(50, 1500)
        : weather.dice('pause').between(1500, 6000),
    ),
  )
  plan('cut', 3, () => {
    const machine = victim('cut')
    if (!machine) return
    machine.cut = true
    sim.note(() => `${machine.name} is cut off`)
    timeline.after(weather.dice('cut').between(100, 6000), () => {
      machine.cut = false
      sim.note(() => `${machine.name} is back`)
    })
  })
  plan('socket', 8, () => {
    const dice = weather.dice('socket')
    const worker = dice.pick(sim.workers.filter(({ alive }) => alive))
    // The machine may notice the break only after a while.
    worker?.cutOff(dice.chance(0.5) ? dice.between(0, 20) : dice.between(20, 5000))
  })
  plan('jump', 3, () => victim('jump')?.jump(weather.dice('jump').between(-20_000, 20_000)))
  plan('wipe', 2, () => {
    sim.note(() => 'all snapshots are lost')
    sim.state.wipe()
  })
  plan('tail', 3, () => {
    sim.note(() => 'the server restarts: the newest snapshots are lost, and what it had in memory')
    sim.registry.forget()
    sim.state.loseTail(weather.dice('tail').between(0, 0.6), weather.dice('tail').chance(0.5))
  })
  plan('amnesia', 1, () => {
    sim.note(() => 'the registry forgets everything')
    sim.registry.forget()
  })
}
