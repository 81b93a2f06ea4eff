/**
 * Turns with the scripted model: the executor generates the answers, and no worker serves the
 * model.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'
import { invoke, placeOf, said, turnIn } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

const agentWith = (name: string, script: string, more: Record<string, unknown> = {}) =>
  s.ok('agent.create', { name, system_prompt: script, tool_presentation: 'flat', ...more })

t.test(
  'an agent without a model of its own follows its script, or repeats its input without a script',
  async (t) => {
    t.match(await s.ok('catalog.models'), { default_model: 'service/scripted' })
    const echo = await agentWith('echo', 'You are kind.')
    const ack = await invoke(s, echo, 'hello')
    t.match(await turnIn(s, ack, 'completed', 'failed'), {
      status: 'completed',
      usage: { calls: 1 },
    })
    t.strictSame(await said(s, ack), ['user: hello', 'assistant: You said: hello'])
    t.match(await s.ok('session.get', { session_id: placeOf(ack).session_id }), {
      model: 'scripted',
      model_provider: 'service',
    })

    const agent = await agentWith(
      'scripted',
      'script:\n  - when: "add * and *"\n    think: Numbers.\n' +
        '    say: "{{1}} plus {{2}}, turn {{turn}}"\n  - say: What?\n',
    )
    const first = await invoke(s, agent, 'Add 1 and 2')
    await turnIn(s, first, 'completed')
    const second = await invoke(s, agent, 'and?')
    await turnIn(s, second, 'completed')
    t.strictSame(await said(s, second), [
      'user: Add 1 and 2',
      'assistant:  1 plus 2, turn 1',
      'user: and?',
      'assistant: What?',
    ])
    const { items } = (await s.ok('session.turn_messages', {
      turn_id: placeOf(first).turn_id,
    })) as unknown as { items: { content: object[] }[] }
    t.match(items[1]?.content, [{ type: 'thinking', thinking: 'Numbers.' }, { type: 'text' }])
  },
)

t.test(
  'transient failures are retried; a permanent one ends the turn with its error type',
  async (t) => {
    const busy = await agentWith(
      'busy',
      'script:\n  - fail: {as: 429, times: 2, retry_after: 100ms}\n    say: At last.\n',
    )
    const ack = await invoke(s, busy, 'now')
    t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
    t.strictSame(await said(s, ack), ['user: now', 'assistant: At last.'])
    const broken = await agentWith('broken', 'script:\n  - fail: 400\n')
    t.match(await turnIn(s, await invoke(s, broken, 'now'), 'failed'), {
      error_type: 'provider_refused',
      error_message: /400/,
    })
    const odd = await agentWith('odd', 'script:\n  - sya: x\n')
    t.match(await turnIn(s, await invoke(s, odd, 'now'), 'failed'), {
      error_type: 'script_invalid',
      error_message: /script\/0|sya/,
    })
    const slow = await agentWith('slow', 'script:\n  - delay: 1m\n    say: too late\n')
    const waiting = await invoke(s, slow, 'go')
    await turnIn(s, waiting, 'running')
    await s.ok('session.cancel_turn', placeOf(waiting))
    t.match(await turnIn(s, waiting, 'cancelled'), { status: 'cancelled' })
    t.strictSame(await said(s, waiting), ['user: go'])
    t.strictSame(
      listOf(await s.ok('session.turns', { session_id: placeOf(waiting).session_id })).map(
        ({ status }) => status,
      ),
      ['cancelled'],
    )
  },
)
