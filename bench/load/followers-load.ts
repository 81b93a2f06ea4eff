/**
 * A process that follows one stream with many clients. Arguments: port, key and number of clients;
 * optionally the path of a stream other than the project's, and the text that precedes the
 * timestamp in a frame.
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
/** The last parsed timestamp. All clients get the same events, so each timestamp is parsed once. */
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
