/** Creates and answers interactions over HTTP for load tests. */
import type { Http } from './http.ts'

const P = '/v1/projects/default'

export interface Interactions {
  /** Creates an interaction with one target and returns its id. */
  ask(): Promise<string>
  /** Answers an interaction, which completes it. */
  answer(id: string): Promise<void>
}
/** Prepares a load of interactions whose target is the principal of the owner key. */
export async function interactionsOf(http: Http): Promise<Interactions> {
  const post = async (path: string, body: object, wanted: number): Promise<string> => {
    const reply = await http.post(`${P}${path}`, JSON.stringify(body))
    if (reply.status !== wanted)
      throw new Error(`${path} was answered ${reply.status}: ${reply.body}`)
    return reply.body
  }
  const { principal_id } = JSON.parse(
    await post('/api-keys', { name: 'bench', allow_unassigned_principal: true }, 201),
  ) as { principal_id: string }
  // The load creates and answers all interactions with the owner key. This first interaction
  // reveals the id of that key's principal (`created_by`), which becomes the target of all others.
  const { created_by } = JSON.parse(
    await post(
      '/interactions',
      { kind: 'request_approval', title: 'Who?', target_user_ids: [principal_id] },
      201,
    ),
  ) as { created_by: string }
  return {
    ask: async () =>
      (
        JSON.parse(
          await post(
            '/interactions',
            {
              kind: 'request_approval',
              title: 'Deploy?',
              target_user_ids: [created_by],
              spec: { mode: 'confirm' },
            },
            201,
          ),
        ) as { id: string }
      ).id,
    answer: async (id) => {
      const body = await post(`/interactions/${id}/respond`, { value: true }, 200)
      if (!body.includes('"status":"completed"'))
        throw new Error(`the answer did not settle it: ${body}`)
    },
  }
}
