/**
 * The process that runs the followers of `deltas.ts`: it follows each session whose id it receives.
 * Arguments: port, key.
 */

import { inFlight } from '../support/measure.ts'
import { openCount, sayReady } from './crowd.ts'
import { follow } from './sse.ts'

const [port = '', key = ''] = process.argv.slice(2)
/** The text that precedes the send time in a frame, and the number of digits of that time. */
const MARK = '"content_index":0,"text":"'
const DIGITS = 13
const open = openCount((message) => {
  const ids = message as readonly string[]
  void inFlight(50, ids.length, (i) =>
    follow(Number(port), key, `/v1/projects/default/sessions/${ids[i]}/transcript/stream`, frames),
  ).then(sayReady)
})

function frames(text: string): void {
  const { count } = open
  if (!count) return
  const now = Date.now()
  for (let at = text.indexOf(MARK); at >= 0; at = text.indexOf(MARK, at + MARK.length)) {
    const sent = Number(text.slice(at + MARK.length, at + MARK.length + DIGITS))
    if (sent > 0) count(sent, now)
  }
}
