/** The process of the followers of sessions: follows each session that it is told of, says so, and between `begin` and `end` counts how late each piece is. Arguments: port, key. */
import type { Told } from './followers.ts'
import { inFlight } from './measure.ts'
import { follow } from './sse.ts'

const [port = '', key = ''] = process.argv.slice(2)
const BUCKETS = 10_000
/** What stands before the text of a piece, and the digits of its time. */
const MARK = '"content_index":0,"text":"'
const DIGITS = 13
const tell = (told: Told) => process.send?.(told)
let counts = new Array<number>(BUCKETS).fill(0)
let events = 0
let counting = false

function frames(text: string): void {
  if (!counting) return
  const now = Date.now()
  for (let at = text.indexOf(MARK); at >= 0; at = text.indexOf(MARK, at + MARK.length)) {
    const sent = Number(text.slice(at + MARK.length, at + MARK.length + DIGITS))
    if (!(sent > 0)) continue
    const late = Math.min(Math.max(now - sent, 0), BUCKETS - 1)
    counts[late] = (counts[late] ?? 0) + 1
    events++
  }
}

process.on('message', (message) => {
  if (Array.isArray(message)) {
    const ids = message as readonly string[]
    void inFlight(50, ids.length, (i) => follow(Number(port), key, `/v1/projects/default/sessions/${ids[i]}/transcript/stream`, frames)).then(() => tell({ ready: ids.length }))
    return
  }
  counting = message === 'begin'
  if (!counting) tell({ counts, events })
  counts = new Array<number>(BUCKETS).fill(0)
  events = 0
})
process.once('disconnect', () => process.exit(0))
