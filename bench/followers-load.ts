/** The process of the followers: opens them, says so, and between `begin` and `end` counts how late each event is. Arguments: port, key, number, and for another stream than the project's its path and what stands before a frame's time. */
import type { Told } from './followers.ts'
import { inFlight } from './measure.ts'
import { follow } from './sse.ts'

const [port = '', key = '', clients = '', path = '/v1/projects/default/runs/events', mark = '"timestamp":"'] = process.argv.slice(2)
const BUCKETS = 10_000
const tell = (told: Told) => process.send?.(told)
let counts = new Array<number>(BUCKETS).fill(0)
let events = 0
let counting = false
/** All followers get the same events: a time is read once. */
let lastText = ''
let lastTime = 0

function frames(text: string): void {
  if (!counting) return
  const now = Date.now()
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    const from = at + mark.length
    const written = text.slice(from, from + 24)
    if (written !== lastText) {
      lastText = written
      lastTime = Date.parse(written)
    }
    const late = Math.min(Math.max(now - lastTime, 0), BUCKETS - 1)
    counts[late] = (counts[late] ?? 0) + 1
    events++
  }
}

process.on('message', (message) => {
  counting = message === 'begin'
  if (!counting) tell({ counts, events })
  counts = new Array<number>(BUCKETS).fill(0)
  events = 0
})
process.once('disconnect', () => process.exit(0))
await inFlight(100, Number(clients), () => follow(Number(port), key, path, frames, () => process.exit(1)))
tell({ ready: Number(clients) })
