/**
 * The agent of the tour: its instructions, the actions that the tour's worker executes for it, and
 * the cleanup after interrupted tours.
 */
import { writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { actions } from '../../protocol/actions/rows.ts'
import type { agents } from '../../protocol/agents/rows.ts'
import type { Reply } from '../../protocol/contract.ts'
import type { Client } from '../client.ts'
import type { Action } from '../worker/options.ts'
import { listFiles, type Sized } from './files.ts'
import { TAGS, TOUR_TIMEOUT_MS } from './loop.ts'
import { measure } from './measure.ts'

/**
 * Returns the action names of one tour. They contain the tour's name, because all workers share the
 * queue and only the tour's own worker can access the folder.
 */
export const toolsOf = (tour: string) => ({
  find: `tour.find.${tour}`,
  lines: `tour.lines.${tour}`,
  note: `tour.note.${tour}`,
})

/**
 * Returns the question for the agent.
 * @param ending suffix of the file names.
 */
export const questionOf = (ending: string): string =>
  `Of the files here that end with ${ending}, which is the largest, and how many lines does it have? Record the answer.`
/** Returns the most frequent file name ending. */
export function commonEnding(files: readonly Sized[]): string {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    const ending = extname(path) || path.slice(-1)
    counts.set(ending, (counts.get(ending) ?? 0) + 1)
  }
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))[0]?.[0] ?? ''
}
/**
 * Returns the largest file with the given ending; if several are equally large, the first of them.
 */
export const largestOf = (files: readonly Sized[], ending: string): Sized | undefined =>
  files
    .filter(({ path }) => path.endsWith(ending))
    .reduce<Sized | undefined>(
      (largest, file) => (largest && largest.size >= file.size ? largest : file),
      undefined,
    )

/**
 * Returns the definitions of the agent's actions. Calls to the action that records the answer need
 * approval, because it is destructive.
 */
export function actionsOf(tour: string) {
  const { find, lines, note } = toolsOf(tour)
  const one = (
    name: string,
    description: string,
    argument: string,
    argumentDescription: string,
    annotations: { readonly read_only?: true; readonly destructive?: true },
  ) => ({
    name,
    description,
    annotations,
    tags: TAGS,
    endpoint_kind: 'worker' as const,
    input_schema: {
      type: 'object',
      properties: { [argument]: { type: 'string', description: argumentDescription } },
      required: [argument],
      additionalProperties: false,
    },
  })
  return [
    one(
      find,
      'Returns the number of files whose names have an ending, and the largest of these files',
      'ending',
      'such as .ts',
      { read_only: true },
    ),
    one(lines, 'Returns the number of lines of a file', 'path', 'path as returned by the search', {
      read_only: true,
    }),
    one(note, 'Records an answer and replaces the previous one', 'text', 'one sentence', {
      destructive: true,
    }),
  ]
}
/**
 * Creates the handlers of the worker.
 * @param notes the folder in which the answer is stored.
 * @param used called with the name of every action that starts.
 */
export function agentActions(
  tour: string,
  folder: string,
  notes: string,
  used: (name: string) => void,
): Readonly<Record<string, Action>> {
  const { find, lines, note } = toolsOf(tour)
  return {
    [find]: async ({ ending }) => {
      used(find)
      const files = (await listFiles(folder)).filter(({ path }) => path.endsWith(String(ending)))
      return { files: files.length, largest: largestOf(files, String(ending))?.path ?? null }
    },
    [lines]: async ({ path }, { signal }) => {
      used(lines)
      return { path, lines: (await measure(folder, [String(path)], signal)).lines }
    },
    [note]: async ({ text }) => {
      used(note)
      await writeFile(join(notes, 'answer.txt'), `${String(text)}\n`)
      return { text }
    },
  }
}

/** Returns the instructions of the agent for a real model. */
export const instructionsOf = (tour: string): string =>
  'You answer questions about the files of one folder, with your tools. Before you answer, ' +
  `record the answer with ${toolsOf(tour).note}; a person must approve this call. ` +
  'Then answer in one sentence that contains the path of the file and its number of lines in digits.'
/** Returns the script that takes the place of a real model. */
export function scriptOf(tour: string): string {
  const { find, lines, note } = toolsOf(tour)
  return `script:
  - when: {text: "*end with *, which is*", step: 1}
    think: First I need the list of files, then the content of the largest one.
    say: I will look for the files that end with {{2}}.
    call: {${find}: {ending: "{{2}}"}}
  - when: {after: ${find}}
    say: The largest of {{result.files}} is {{result.largest}}. I will count its lines.
    call: {${lines}: {path: "{{result.largest}}"}}
  - when: {after: ${lines}}
    say: I will record the answer if this is approved.
    call: {${note}: {text: "{{result.path}} is the largest and has {{result.lines}} lines."}}
  - when: {after: ${note}, error: true}
    say: I was not allowed to record the answer.
  - when: {after: ${note}}
    say: "{{result.text}}"
`
}

/**
 * Deletes agents and actions that interrupted tours left behind.
 * @param now Unix milliseconds.
 */
export async function deleteLeftoverAgents(at: Client, now: number): Promise<void> {
  const left = ({
    tags,
    created_at,
  }: {
    readonly tags?: Readonly<Record<string, string>>
    readonly created_at: string
  }): boolean =>
    tags?.['made_by'] === TAGS.made_by && now - Date.parse(created_at) > TOUR_TIMEOUT_MS
  for (let cursor: string | undefined, more = true; more; ) {
    const page: Reply<(typeof agents)['agent.list']> = await at.agent.list({
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    })
    for (const agent of page.items)
      if (left(agent)) await at.agent.delete({ id: agent.id }).catch(() => {})
    cursor = page.next_cursor
    more = page.has_more
  }
  for (let cursor: string | undefined, more = true; more; ) {
    const page: Reply<(typeof actions)['action.list']> = await at.action.list({
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    })
    for (const action of page.items)
      if (left(action)) await at.action.delete({ action_name: action.name }).catch(() => {})
    cursor = page.next_cursor
    more = page.has_more
  }
}
