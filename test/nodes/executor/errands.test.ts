/**
 * The errand that removes a principal from all channels: the commands that it sends, and their
 * effects.
 */
import t from 'tap'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import { errands } from '../../../nodes/executor/errands/errands.ts'
import type { Handler } from '../../../nodes/executor/handler.ts'
import type { Command } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { fake } from '../../support/fake-world.ts'

type Work = Parameters<Handler['perform']>[0]
function handlerOf(
  principals: object,
  expelled: (command: Command) => { reply: unknown } | Refusal,
) {
  const sent: Command[] = []
  const asking = fake<CapabilityReader>('reader', {
    directory: {
      refreshProject: async () => ({ principals, agents: {} }),
      organization: async () => ({ keys: {}, projects: {} }),
    },
    world: {
      node: 'n1',
      now: () => 0,
      monotonic: () => 0,
      random: (bytes: number) => new Uint8Array(bytes),
      newCommandId: uniqueTexts((bytes) => new Uint8Array(bytes)),
      view: async (_: string, name: string, input: object) =>
        name === 'channels_of' ? { items: ['chan_1', 'chan_2'], ...input } : refuse('not_found'),
      command: async (command: Command) => {
        sent.push(command)
        return expelled(command)
      },
    },
  })
  const run = (spec: object) =>
    errands(asking, { convert: async () => undefined }).perform({
      project: 'prj_1',
      job: { id: 'job_1', spec },
      signal: new AbortController().signal,
    } as unknown as Work)
  return { sent, run }
}
const leave = { errand: 'leave', principal_id: 'user_1' }

t.test('a deleted principal is expelled from each channel', async (t) => {
  const { sent, run } = handlerOf({}, () => ({ reply: undefined }))
  t.strictSame(await run(leave), { status: 'completed', result: {} })
  t.match(sent, [
    { kind: 'channel', id: 'chan_1', name: 'channel.expel', input: { member_id: 'user_1' } },
    { id: 'chan_2' },
  ])
})
t.test('a disabled principal is expelled with the flag disabled', async (t) => {
  const { sent, run } = handlerOf(
    { user_1: { id: 'user_1', state: 'disabled', kind: 'user', name: 'Ann' } },
    () => ({ reply: undefined }),
  )
  await run(leave)
  t.match(sent, [{ input: { member_id: 'user_1', disabled: true } }, {}])
})
t.test('a principal that is active again stays, and an obsolete errand does nothing', async (t) => {
  const { sent, run } = handlerOf(
    { user_1: { id: 'user_1', state: 'active', kind: 'user', name: 'Ann' } },
    () => ({ reply: undefined }),
  )
  t.match(await run(leave), { status: 'completed' })
  t.match(await run({ errand: 'none' }), { status: 'completed' })
  t.strictSame(sent, [])
})
t.test('inactive new members are expelled, and nothing else is done', async (t) => {
  const { sent, run } = handlerOf(
    {
      user_1: { id: 'user_1', state: 'active', kind: 'user', name: 'Ann' },
      user_2: { id: 'user_2', state: 'disabled', kind: 'user', name: 'Bob' },
    },
    () => ({ reply: undefined }),
  )
  const confirm = { errand: 'confirm', channel_id: 'chan_9' }
  t.match(await run({ ...confirm, member_ids: ['user_1', 'user_2', 'user_3'] }), {
    status: 'completed',
  })
  t.match(sent, [
    { id: 'chan_9', name: 'channel.expel', input: { member_id: 'user_2', disabled: true } },
    { id: 'chan_9', name: 'channel.expel', input: { member_id: 'user_3', disabled: false } },
  ])
  t.equal(sent.length, 2)
})
t.test('a failed errand is retried', async (t) => {
  const { run } = handlerOf({}, () => refuse('service_unavailable'))
  t.match(await run(leave), { status: 'failed', error_type: 'service_unavailable', retry_in: 500 })
})
