/**
 * A client follows a transcript over two gateways. One of them is killed while a model generates
 * text.
 */
import t from 'tap'
import { followTranscript, readTranscript, Transcript } from '../../../client/transcript.ts'
import { testWorker } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'
import { answer, text } from '../support/talk.ts'

type Json = Record<string, unknown>
t.setTimeout(120_000)
t.test(
  'a follower receives every chunk once, whichever gateway is killed',
  { timeout: 120_000 },
  async (t) => {
    const it = await processes({ ...hasty, BATON_STREAM_IDLE: '1' })
    t.teardown(() => it.stop())
    const ports = await portsFor(2)
    const [first = '', second = ''] = ports.map((port) => `http://127.0.0.1:${port}`)
    await it.node('core', 'shards,views')
    const [doomed] = await Promise.all(
      ports.map((port, i) => it.node(`gateway-${i}`, 'gateway', port)),
    )
    const call = async (path: string, body: Json): Promise<Json> => {
      const given = await fetch(`${second}/v1/projects/default${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!given.ok) throw new Error(`${path}: ${given.status} ${await given.text()}`)
      return (await given.json()) as Json
    }
    const agent = await call('/agents', {
      name: 'poet',
      model_route: { mode: 'worker', provider: 'local', model: 'poet' },
    })
    const model = await testWorker(second, it.key, 'default', {
      models: [{ provider: 'local', model: 'poet' }],
      action_names: ['nothing'],
    })
    const ack = await call('/agents/invoke', {
      agent_ref: { id: agent['id'] },
      input: { content: [text('a poem')] },
    })
    const session_id = (ack['session'] as { id: string }).id
    const job = await model.job()
    let spoken = 0
    const say = (words: readonly string[]): void => {
      for (const word of words)
        model.send({
          type: 'generation.delta',
          job_id: job['id'],
          lease_token: job['lease_token'],
          sequence: ++spoken,
          delta: { text: `${word} ` },
        })
    }

    const both = { key: it.key, session_id }
    const transcript = new Transcript(String(ack['resume_cursor']))
    const reconnects: string[] = []
    const cursors: string[] = []
    const followed = (async () => {
      for await (const { frame } of followTranscript({
        ...both,
        url: [first, second],
        transcript,
        pause: () => Promise.resolve(),
        onReconnect: (reason) => reconnects.push(reason),
        onCursor: (cursor) => cursors.push(cursor),
      }))
        if (frame) continue
    })()
    const said = (): string =>
      transcript
        .messages()
        .at(-1)
        ?.content.map((block) => (block.type === 'text' ? block.text : ''))
        .join('') ?? ''
    say(['red', 'is', 'the'])
    await until(
      async () => said(),
      (words) => words === 'red is the ',
    )
    await doomed?.kill()
    say(['rose'])
    await until(
      async () => said(),
      (words) => words === 'red is the rose ',
    )
    t.ok(reconnects.length > 0, 'the connection was lost')
    await it.node('gateway-0', 'gateway', ports[0])
    say(['still'])
    await model.report(job, { status: 'completed', ...answer([text('red is the rose still')]) })
    await followed
    t.strictSame(
      transcript.messages().map(({ sequence, status, role }) => [sequence, status, role]),
      [
        [1, 'final', 'user'],
        [2, 'final', 'assistant'],
      ],
    )
    t.equal(said(), 'red is the rose still')
    for (const url of [first, second]) {
      const fresh = await readTranscript(
        { ...both, url },
        new Transcript(String(ack['resume_cursor'])),
      )
      t.strictSame(fresh.messages(), transcript.messages())
      t.strictSame([...fresh.turns.values()], [...transcript.turns.values()])
      t.equal(fresh.cursor, transcript.cursor)
    }
    t.equal(new Set(cursors).size, cursors.length, 'no cursor was repeated')
    model.close()
  },
)
