/** Frames of event streams: their data is one line for every client. */
import t from 'tap'
import { frameOf as mcpFrame } from '../../../gateway/mcp/follow.ts'
import { frameText } from '../../../gateway/sessions/transcript/change.ts'
import { frame } from '../../../gateway/streams/sse.ts'

t.test('a frame contains no characters that some clients treat as line breaks', async (t) => {
  const data = { text: 'a\u0085b\u2028c\u2029d\n\r' }
  for (const sent of [
    frame('step.completed', data, 7),
    frameText('turn.upsert', data),
    mcpFrame(data),
  ]) {
    t.match(sent, /^(id: 7\n)?event: [a-z.]+\ndata: [^\n\r\u0085\u2028\u2029]+\n\n$/)
    t.match(JSON.parse(sent.slice(sent.indexOf('data: ') + 6)), data)
  }
})
