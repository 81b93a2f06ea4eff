/** Following a channel through the client, over the real service. */
import t from 'tap'
import { channelLine } from '../../client/cli/timeline.ts'
import { client } from '../../client/client.ts'
import { followChannel } from '../../client/follow.ts'
import type { ChannelEventRecord } from '../../protocol/channels/schema.ts'
import { service } from '../support/service.ts'

const s = await service()
t.teardown(() => s.stop())

t.test(
  'yields each event after a cursor once, across reconnections, until the channel is deleted',
  async (t) => {
    const baton = client({ url: s.url, key: s.key })
    const channel = await baton.channel.create({ name: 'followed' })
    const { id } = channel
    await baton.channel.send({ id, content: 'one' })
    const seen: ChannelEventRecord[] = []
    let broken = 0
    for (let after = 0, cut = true; cut; ) {
      const abort = new AbortController()
      cut = false
      for await (const { data } of followChannel(baton, id, { after, signal: abort.signal })) {
        seen.push(data)
        after = data.sequence
        if (seen.length === 2) {
          cut = true
          broken++
          abort.abort()
          break
        }
        if (data.event_type === 'message.created' && seen.length < 5)
          await baton.channel.send({ id, content: `after ${seen.length}` })
        if (seen.length === 5) await baton.channel.delete({ id })
      }
      if (cut) await baton.channel.send({ id, content: 'meanwhile' })
    }
    t.equal(broken, 1)
    t.equal(seen.at(-1)?.event_type, 'channel.deleted')
    const seqs = seen.slice(0, -1).map(({ payload }) => (payload['message'] as { seq: number }).seq)
    t.strictSame(
      seqs,
      seqs.map((_, n) => n + 1),
      'every message once',
    )
    t.match(
      channelLine(seen[0] as ChannelEventRecord),
      /^[\d:.]+ {2}message\.created {3}1 {2}svc_\w+ {2}one$/,
    )
    t.match(channelLine(seen.at(-1) as ChannelEventRecord), /channel\.deleted {3}followed$/)
    await t.rejects(async () => {
      for await (const _ of followChannel(baton, id)) t.fail('a deleted channel has no stream')
    }, /no such channel/)
  },
)

t.test('skips nothing when the first connection breaks before the first event', async (t) => {
  const sender = client({ url: s.url, key: s.key })
  const { id } = await sender.channel.create({ name: 'broken-early' })
  for (const content of ['one', 'two']) await sender.channel.send({ id, content })
  let connections = 0
  /**
   * Ends the first stream once it has sent its starting position. Sends a message before the next
   * stream opens.
   */
  const breaking: typeof fetch = async (input, init) => {
    if (connections > 0) await sender.channel.send({ id, content: 'three' })
    const answer = await fetch(input, init)
    if (connections++ > 0 || !answer.body) return answer
    const reader = answer.body.getReader()
    let head = ''
    while (!head.includes('begins after')) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`the stream ended after ${head}`)
      head += new TextDecoder().decode(value)
    }
    t.match(head, /\n: begins after (\d+)\nid: \1\n\n/)
    await reader.cancel()
    return new Response(head, answer)
  }
  const follower = client({ url: s.url, key: s.key, fetch: breaking })
  const reasons: string[] = []
  for await (const { data } of followChannel(follower, id, {
    onReconnect: (reason) => reasons.push(reason),
  })) {
    t.match(data, { event_type: 'message.created', payload: { message: { content: 'three' } } })
    break
  }
  t.equal(reasons.length, 1)
})
