/** The audit log of a project. */
import type { PageProps } from '../../shell/page.tsx'
import { AuditLog } from './log.tsx'

export default function ProjectAuditPage({ params }: PageProps) {
  return <AuditLog project={params['project'] ?? ''} />
}
