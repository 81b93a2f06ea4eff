/** Following a channel through the client, over the real service. */
import t from 'tap'
import { client } from '../../client/client.ts'
import { channelLine } from '../../client/cli/timeline.ts'
import { followChannel } from '../../client/follow.ts'
import type { ChannelEventRecord } from '../../protocol/channels.ts'
import { service } from '../service.ts'

const s = await service()
t.teardown(() => s.stop())

t.test(
  'gives what happens after a cursor, once, over reconnections, until the channel is deleted',
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
