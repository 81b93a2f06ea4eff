/** The filters of an audit log. */
import { Button } from '../../design/button.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { projects } from '../../shell/session.ts'
import { type FilterName, filterNames, resourceTypes } from './filters.ts'
import { auditText as text } from './text.ts'

/** Shows the filters. `everywhere` adds a project filter, for the log of the organization. */
export function FilterBar({ everywhere }: { readonly everywhere: boolean }) {
  const { query } = currentUrl.value
  const bound = (name: FilterName) => ({
    value: query.get(name) ?? '',
    onValue: (value: string) => setQuery({ [name]: value, entry: undefined }),
  })
  const isFiltered = filterNames.some((name) => query.get(name))
  return (
    <div class="audit-filters" role="search" aria-label={text.filters}>
      <SelectField
        label={text.resource}
        choices={[
          { value: '', label: text.allResources },
          ...resourceTypes.map((type) => ({ value: type, label: type.replaceAll('_', ' ') })),
        ]}
        {...bound('type')}
      />
      <SelectField
        label={text.action}
        choices={[
          { value: '', label: text.allActions },
          ...(['create', 'update', 'delete'] as const).map((one) => ({
            value: one,
            label: text[one],
          })),
        ]}
        {...bound('action')}
      />
      <SelectField
        label={text.actor}
        choices={[
          { value: '', label: text.allActors },
          ...(['user', 'service_account', 'agent', 'system'] as const).map((one) => ({
            value: one,
            label: text[one],
          })),
        ]}
        {...bound('actor_type')}
      />
      <SelectField
        label={text.period}
        choices={[
          { value: '', label: text.anyTime },
          { value: '1h', label: text.lastHours(1) },
          { value: '24h', label: text.lastHours(24) },
          { value: '7d', label: text.lastDays(7) },
          { value: '30d', label: text.lastDays(30) },
        ]}
        {...bound('period')}
      />
      {everywhere && (
        <SelectField
          label={text.projectId}
          choices={[
            { value: '', label: text.allProjects },
            ...projects.value.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          {...bound('in')}
        />
      )}
      <TextField label={text.resourceId} spellcheck={false} {...bound('resource')} />
      <TextField label={text.actorId} spellcheck={false} {...bound('actor')} />
      {isFiltered && (
        <Button
          kind="quiet"
          icon="close"
          onClick={() => setQuery(Object.fromEntries(filterNames.map((name) => [name, ''])))}
        >
          {text.clear}
        </Button>
      )}
    </div>
  )
}
