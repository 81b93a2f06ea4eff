/**
 * The process of followers of one stream. Arguments: port, key, number of followers; optionally the
 * path of a stream other than the project's, and the text before a frame's time.
 */

import { inFlight } from '../support/measure.ts'
import { openCount, sayReady } from './crowd.ts'
import { follow } from './sse.ts'

const [
  port = '',
  key = '',
  clients = '',
  path = '/v1/projects/default/runs/events',
  mark = '"timestamp":"',
] = process.argv.slice(2)
const open = openCount()
/** All followers receive the same events, so each time is parsed once. */
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
