/** The warnings that the service returned when it saved a definition. */
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { Notice } from '../../design/states.tsx'

/** Shows the warnings, if there are any. */
export const Warnings = ({ warnings = [] }: Pick<Workflow, 'warnings'>) =>
  warnings.length === 0 ? null : (
    <Notice tone="warn">
      {warnings.map(({ field, message }) => (
        <p key={field} class="user-text">
          {message} <code class="small">{field}</code>
        </p>
      ))}
    </Notice>
  )
