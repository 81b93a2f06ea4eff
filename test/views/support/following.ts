/** A view that follows a journal, with all inputs under the control of the test. */
import { decodeEnvelope } from '../../../nodes/host/memory/codec.ts'
import { ViewFollower, type ViewJournal } from '../../../views/follow.ts'
import { type Message, View } from '../../../views/view.ts'
import { type Answer, each, Journal } from './journal.ts'

/**
 * Creates a journal with a view and a follower. The test controls deliveries, the journal's end and
 * the clock.
 */
export function world(journal = new Journal()) {
  const timers = new Set<{ at: number; run: () => void }>()
  const alarms: string[] = []
  let now = 0
  let on: ((batch: readonly Message[]) => Promise<void> | void) | undefined
  const state = {
    from: [] as number[],
    stopped: 0,
    asked: 0,
    end: undefined as (() => Promise<{ first: number; last: number }>) | undefined,
    known: undefined as (() => number | undefined) | undefined,
    lag: [] as number[],
  }
  const end = () => ({
    first: journal.messages[0]?.sequence ?? 1,
    last: journal.messages.at(-1)?.sequence ?? 0,
  })
  const port: ViewJournal = {
    follow: (from, handler) => {
      state.from.push(from)
      on = handler
      return () => {
        state.stopped++
        if (on === handler) on = undefined
      }
    },
    end: () => state.known?.(),
    position: () => {
      state.asked++
      return state.end ? state.end() : Promise.resolve(end())
    },
    decode: (data) => decodeEnvelope(data, { get: () => Promise.resolve(undefined) }),
  }
  const view = View.open(':memory:')
  const follower = new ViewFollower(view, port, {
    timeout: 10_000,
    pause: 1000,
    hooks: {
      alarm: (error) => alarms.push((error as Error).name),
      lag: (messages) => state.lag.push(messages),
    },
    later: (ms, run) => {
      const timer = { at: now + ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  })
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    journal,
    view,
    follower,
    state,
    alarms,
    end,
    settle,
    timers,
    deliver: async (...messages: readonly Message[]) => {
      await on?.(messages)
      await settle()
    },
    pass: async (ms: number) => {
      now += ms
      for (const timer of [...timers]) if (timer.at <= now && timers.delete(timer)) timer.run()
      await settle()
    },
    /** Queries the runs; `answer` is undefined until it arrives. */
    ask: (fresh?: number, within?: number) => {
      const asked: { answer?: Answer } = {}
      void follower
        .ask('run.list', 'prj_a', {}, fresh, within)
        .then((answer) => (asked.answer = answer as Answer))
      return asked
    },
  }
}
export const ids = ({ answer }: { answer?: Answer }) => answer && each(answer, 'id')
