/**
 * The turns of the kill test: their messages to the agent, the script that the agent follows, and
 * the exact expected results.
 */

const kinds = ['one', 'pair', 'chain', 'broken'] as const
/**
 * `one`: a turn with one tool call. `pair`: a turn with two concurrent calls. `chain`: a turn with
 * two calls in sequence. `broken`: a turn with a call that fails.
 */
export type Kind = (typeof kinds)[number]
/** Returns the kind of turn `n`. Turns 0 to 3, 4 to 7, and so on include one of each kind. */
export const kindOf = (n: number): Kind => kinds[(n * 3 + (n >> 2)) % kinds.length] ?? 'one'
/** The names of the tool that returns its input, and of the tool that fails. */
export const tools = { work: 'jobs.work', fail: 'jobs.fail' } as const

/**
 * The script of the agent. Many answers are delayed or arrive in chunks, so that kills interrupt
 * some of them.
 */
export const script = `
script:
  - when: {text: "one *", step: 1}
    say: "I do {{1}} and nothing else."
    delay: 80ms
    pace: 15ms
    chunk: 4
    call: {jobs.work: {n: "{{1}}/a"}}
  - when: {text: "pair *", step: 1}
    think: "Two things are to be done."
    say: "I do both."
    pace: 20ms
    chunk: 5
    call: [{jobs.work: {n: "{{1}}/a"}}, {jobs.work: {n: "{{1}}/b"}}]
  - when: {text: "chain *", step: 1}
    say: "First one."
    call: {jobs.work: {n: "{{1}}/a"}}
  - when: {text: "chain *", step: 2, after: jobs.work, error: false}
    say: "Then the other."
    delay: 150ms
    call: {jobs.work: {n: "{{1}}/b"}}
  - when: {text: "broken *", step: 1}
    say: "I try."
    call: {jobs.fail: {n: "{{1}}/a"}}
  - when: {text: "broken *", after: jobs.fail, error: true}
    say: "{{1}} failed, as it should."
  - when: {after: jobs.work, error: true}
    say: "It failed: {{result}}"
  - when: {text: "pair *", after: jobs.work}
    say: "{{results.0.n}} and {{results.1.n}} are done."
    pace: 15ms
    chunk: 3
  - when: {after: jobs.work}
    say: "{{result.n}} is done."
    delay: 60ms
    pace: 10ms
    chunk: 2
`
export const saidTo = (kind: Kind, n: number): string => `${kind} ${n}`

const result = (call: string): string => JSON.stringify({ n: call })
/** Returns the tool calls that a turn must complete. */
export const callsOf = (kind: Kind, n: number): readonly string[] =>
  kind === 'broken' ? [] : kind === 'one' ? [`${n}/a`] : [`${n}/a`, `${n}/b`]
/** Returns the expected rows of a turn, in the format of `spell`. */
export function rowsOf(kind: Kind, n: number): readonly string[] {
  const [a, b] = [`${n}/a`, `${n}/b`]
  const [work, fail] = ['jobs_work', 'jobs_fail']
  const first = `user: ${saidTo(kind, n)}`
  switch (kind) {
    case 'one':
      return [
        first,
        `assistant: I do ${n} and nothing else. ${work}`,
        `user: ${result(a)}`,
        `assistant: ${a} is done.`,
      ]
    case 'pair':
      return [
        first,
        `assistant: Two things are to be done. I do both. ${work} ${work}`,
        `user: ${result(a)} ${result(b)}`,
        `assistant: ${a} and ${b} are done.`,
      ]
    case 'chain':
      return [
        first,
        `assistant: First one. ${work}`,
        `user: ${result(a)}`,
        `assistant: Then the other. ${work}`,
        `user: ${result(b)}`,
        `assistant: ${b} is done.`,
      ]
    case 'broken':
      return [
        first,
        `assistant: I try. ${fail}`,
        'user: error',
        `assistant: ${n} failed, as it should.`,
      ]
  }
}

interface Row {
  readonly role: string
  readonly content: readonly object[]
}
/**
 * Converts a row to text: its role and the text of its blocks. A tool error is shown only as
 * `error`.
 */
export const spell = ({ role, content }: Row): string =>
  `${role}: ` +
  (content as readonly Readonly<Record<string, unknown>>[])
    .map((block) =>
      block['is_error'] === true
        ? 'error'
        : String(block['text'] ?? block['thinking'] ?? block['name'] ?? block['content']),
    )
    .join(' ')
