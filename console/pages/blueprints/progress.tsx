/**
 * The progress of an apply: how many created and adopted resources are already bound to the
 * blueprint.
 */

import type { ApplyResult } from '../../../protocol/blueprints/schema.ts'
import { useQuery } from '../../api/query.ts'
import { bindingKinds } from './binding-kinds.ts'
import { blueprintsText as text } from './text.ts'

/** Shows the progress bar while the plan is being applied. */
export function Progress({
  project,
  identity: { namespace, key },
  plan,
}: {
  readonly project: string
  readonly identity: { readonly namespace: string; readonly key: string }
  readonly plan: ApplyResult
}) {
  const bound =
    useQuery(
      'blueprint.bindings',
      {
        project,
        include: ['further_types'],
        ...(namespace !== '' && { namespace }),
        ...(key !== '' && { blueprint_key: key }),
      },
      { kinds: bindingKinds },
    ).state.value.data?.items ?? []
  const wanted = plan.changes.filter(({ action }) => action === 'created' || action === 'adopted')
  const done = wanted.filter((change) =>
    bound.some((one) => one.resource_type === change.resource_type && one.key === change.key),
  ).length
  return (
    <div class="stack close" role="status">
      <strong>{text.applying}</strong>
      {wanted.length > 0 ? (
        <>
          <progress aria-label={text.applying} value={done} max={wanted.length} />
          <span class="small soft">{text.progress(done, wanted.length)}</span>
        </>
      ) : (
        <progress aria-label={text.applying} />
      )}
    </div>
  )
}
