/** Queries to a view that a gateway repeats while they are in progress. */
import t from 'tap'
import { createPendingQueries } from '../../../nodes/roles/pending-queries.ts'
import type { Question } from '../../../nodes/roles/view.ts'

/** Creates a view whose queries stay pending until the test answers them. */
function scripted() {
  const asked: { question: Question; answer(value: unknown): void; fail(error: Error): void }[] = []
  const queries = createPendingQueries(
    (question) => new Promise((answer, fail) => asked.push({ question, answer, fail })),
  )
  const ask = (id?: string) =>
    queries.ask({ name: 'n', project: 'p', input: {}, ...(id !== undefined && { id }) })
  return { asked, queries, ask }
}

t.test('a repeated request joins the query in progress', async (t) => {
  const { asked, ask } = scripted()
  const answers = [ask('a'), ask('a'), ask('b'), ask('a')]
  t.equal(asked.length, 2)
  asked[0]?.answer(1)
  asked[1]?.answer(2)
  t.strictSame(await Promise.all(answers), [1, 1, 2, 1])
  const later = ask('a')
  t.equal(asked.length, 3, 'an answered query is asked again')
  asked[2]?.fail(new Error('down'))
  await t.rejects(later, /down/)
  void ask('a')
  t.equal(asked.length, 4, 'and so is a failed one')
})

t.test('requests of earlier releases are separate', async (t) => {
  const { asked, ask } = scripted()
  void ask()
  void ask()
  t.equal(asked.length, 2)
})

t.test('the end waits for all queries in progress', async (t) => {
  const { asked, queries, ask } = scripted()
  let ended = false
  void ask('a')
  ask('b').catch(() => {})
  const end = queries.ended().then(() => {
    ended = true
  })
  asked[1]?.fail(new Error('down'))
  await new Promise((turn) => setImmediate(turn))
  t.notOk(ended)
  asked[0]?.answer(1)
  await end
})
