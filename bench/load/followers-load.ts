/** The process of the followers of one stream. Arguments: port, key, number, and for another stream than the project's its path and what stands before a frame's time. */
import { openCount, sayReady } from './crowd.ts'
import { inFlight } from '../support/measure.ts'
import { follow } from './sse.ts'

const [
  port = '',
  key = '',
  clients = '',
  path = '/v1/projects/default/runs/events',
  mark = '"timestamp":"',
] = process.argv.slice(2)
const open = openCount()
/** All followers get the same events: a time is read once. */
let lastText = ''
let lastTime = 0

function frames(text: string): void {
  const { count } = open
  if (!count) return
  const now = Date.now()
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    const from = at + mark.length
    const written = text.slice(from, from + 24)
    if (written !== lastText) {
      lastText = written
      lastTime = Date.parse(written)
    }
    count(lastTime, now)
  }
}

await inFlight(100, Number(clients), () =>
  follow(Number(port), key, path, frames, () => process.exit(1)),
)
sayReady()
