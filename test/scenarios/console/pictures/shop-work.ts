/** The definitions of the bookshop in the pictures, and the worker that executes its jobs. */
import type { TestWorker } from '../../../support/service.ts'

type Open = Record<string, unknown>

export const DESK = `script:
  - when: {text: "*order*", step: 1}
    think: The number of the order is in the message, so I can look it up.
    call: {orders.find: {number: "L-2041"}}
  - when: {after: orders.find}
    say: |
      Order **L-2041** was packed this morning and is with the carrier.

      | | |
      |---|---|
      | Status | packed |
      | Carrier | Post, parcel 00340434161094 |
      | Expected | Friday |

      Shall I write this to the customer?
  - when: "*write*"
    say: "I have sent the reply. The customer will receive it within a minute."
  - say: I can look up orders, deliveries and refunds.
`

export const fulfilment = {
  input: {
    order: { type: 'string', required: true },
    total: { type: 'number' },
  },
  run_name: { template: 'Order ${{ input.order }}' },
  steps: [
    {
      id: 'reserve',
      name: 'Reserve the books',
      kind: 'action',
      config: { action_name: 'stock.reserve' },
    },
    {
      id: 'charge',
      name: 'Charge the customer',
      kind: 'action',
      config: {
        action_name: 'payments.charge',
        parameters: { order: '${{ input.order }}' },
      },
      retry: { max_attempts: 3, delay: '1s' },
    },
    {
      id: 'check',
      name: 'Check large orders',
      kind: 'interaction',
      if: 'input.total > 500',
      config: {
        protocol: 'request_approval',
        targets: ['role:Shift lead'],
        title: 'Ship order ${{ input.order }} of ${{ input.total }} €?',
        description: 'The order is larger than 500 €. Check the address before it is packed.',
        expires_in: '24h',
      },
    },
    {
      id: 'prepare',
      name: 'Prepare the parcel',
      kind: 'parallel',
      config: {
        branches: [
          {
            id: 'pack',
            steps: [{ id: 'pack', kind: 'action', config: { action_name: 'parcel.pack' } }],
          },
          {
            id: 'label',
            steps: [{ id: 'label', kind: 'action', config: { action_name: 'parcel.label' } }],
          },
        ],
      },
    },
    {
      id: 'notify',
      name: 'Tell the customer',
      kind: 'action',
      config: { action_name: 'mail.send' },
    },
  ],
  output: { parcel: '${{ steps.prepare.output.branches.label }}' },
}
export const books = [
  ['978-0-14', 'The Left Hand of Darkness', 'Ursula K. Le Guin', 14.5, 23, '2026-10-02'],
  ['978-0-39', 'The Dispossessed', 'Ursula K. Le Guin', 13.9, 8, '2026-10-02'],
  ['978-1-78', 'Piranesi', 'Susanna Clarke', 11.0, 41, '2026-09-18'],
  ['978-0-57', 'Never Let Me Go', 'Kazuo Ishiguro', 12.5, 0, '2026-08-30'],
  ['978-0-31', 'Middlemarch', 'George Eliot', 9.9, 17, '2026-11-04'],
  ['978-0-06', 'The Poisonwood Bible', 'Barbara Kingsolver', 15.0, 5, '2026-11-12'],
  ['978-1-84', 'Wolf Hall', 'Hilary Mantel', 16.9, 12, '2026-11-20'],
] as const

/** Answers every job with a plausible result, until the socket is closed. */
export async function work(worker: TestWorker): Promise<void> {
  const results: Readonly<Record<string, Open>> = {
    'stock.reserve': { reserved: 2, shelf: 'B 14' },
    'payments.charge': { charge: 'ch_20931', currency: 'EUR' },
    'parcel.pack': { weight_grams: 820 },
    'parcel.label': { carrier: 'Post', parcel: '00340434161094' },
    'mail.send': { accepted: true },
    'orders.find': { number: 'L-2041', status: 'packed' },
  }
  for (;;) {
    const job = await worker.job()
    const { id: job_id, lease_token } = job
    const name = String(job['action_name'])
    const lines = [
      { level: 'info', text: `${name} began` },
      { level: 'debug', text: `lease ${String(lease_token).length} characters` },
      { level: name === 'parcel.label' ? 'warn' : 'info', text: `${name} done in 12 ms` },
    ]
    worker.send({ type: 'job.log', job_id, lease_token, lines })
    const input = JSON.stringify(job)
    await worker.report(
      job,
      input.includes('L-2038') && name === 'payments.charge'
        ? {
            status: 'failed',
            error_type: 'card_declined',
            error_message: 'The bank declined the card.',
          }
        : { status: 'completed', result: results[name] ?? {} },
    )
  }
}
