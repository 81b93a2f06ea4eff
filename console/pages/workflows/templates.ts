/** Complete definitions from which a new workflow can be created. */
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { workflowsText as text } from './text.ts'

/** A template. `me` is the id of the principal who creates the workflow. */
export interface Template {
  readonly id: string
  readonly label: string
  readonly hint: string
  readonly spec: (me: string) => Spec
}

/** The templates, the simplest first. */
export const templates: readonly Template[] = [
  {
    id: 'hello',
    label: text.hello,
    hint: text.helloHint,
    spec: () => ({
      input: { name: { type: 'string', description: 'Who is greeted', default: 'World' } },
      steps: [{ id: 'wait', kind: 'sleep', config: { duration: '1s' } }],
      output: { greeting: 'Hello ${{ input.name }}!' },
    }),
  },
  {
    id: 'approval',
    label: text.approval,
    hint: text.approvalHint,
    spec: (me) => ({
      input: { subject: { type: 'string', description: 'What is decided', required: true } },
      steps: [
        {
          id: 'ask',
          kind: 'interaction',
          config: {
            protocol: 'request_approval',
            targets: [me],
            title: '${{ input.subject }}',
            prompt: 'Do you approve of ${{ input.subject }}?',
            expires_in: '24h',
          },
        },
      ],
      output: { approved: '${{ steps.ask.output.value }}' },
    }),
  },
  {
    id: 'items',
    label: text.items,
    hint: text.itemsHint,
    spec: () => ({
      input: { numbers: { type: 'array', description: 'Numbers to double', default: [1, 2, 3] } },
      steps: [
        {
          id: 'each',
          kind: 'for_each',
          config: {
            items: '${{ input.numbers }}',
            max_concurrency: 5,
            steps: [{ id: 'wait', kind: 'sleep', config: { duration: '1s' } }],
            output: { doubled: '${{ item * 2 }}' },
          },
        },
      ],
      output: { results: '${{ steps.each.output.results }}' },
    }),
  },
  {
    id: 'signal',
    label: text.signal,
    hint: text.signalHint,
    spec: () => ({
      steps: [
        {
          id: 'wait',
          kind: 'wait_for_event',
          config: { event_type: 'signal.continue' },
          timeout: { duration: '1h', on_timeout: 'continue' },
        },
      ],
    }),
  },
]
