import { CORDON_ANNOTATION, KEEP_CORDONED_ANNOTATION, UNCORDONED_ANNOTATION } from '#libs/contracts';
import { cordonWrite, uncordonWrite, wasTakenOff, type NodeCordon, type NodeWrite } from './index.js';

/** A Node that writes and people change, as the API server would store it. */
class Node implements NodeCordon {
  unschedulable = false;
  setBySluice = true;
  annotations: Record<string, string> = {};

  person(unschedulable: boolean): this {
    if (this.unschedulable !== unschedulable) this.setBySluice = false;
    this.unschedulable = unschedulable;
    return this;
  }
  cordon(lease: string): this {
    return this.write(cordonWrite(this, lease));
  }
  uncordon(lease: string): this {
    return this.write(uncordonWrite(this, lease));
  }
  private write(write: NodeWrite | undefined): this {
    if (write?.unschedulable !== undefined && write.unschedulable !== this.unschedulable) {
      this.unschedulable = write.unschedulable;
      this.setBySluice = true;
    }
    for (const [key, value] of Object.entries(write?.annotations ?? {})) {
      if (value === null) delete this.annotations[key];
      else this.annotations[key] = value;
    }
    return this;
  }
}

describe('the cordon of a Node', () => {
  it('is set with a mark that names the lease, and removed after it', () => {
    const node = new Node().cordon('l1');
    expect(node).toMatchObject({
      unschedulable: true,
      annotations: { [CORDON_ANNOTATION]: '{"lease":"l1","alreadyCordoned":false}' },
    });
    expect(cordonWrite(node, 'l1')).toBeUndefined();
    expect(node.uncordon('l1')).toMatchObject({ unschedulable: false, annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
    expect(node.annotations[CORDON_ANNOTATION]).toBeUndefined();
  });

  it('stays if a person set it before the drain (MCO #4475)', () => {
    const node = new Node().person(true).cordon('l1');
    expect(node.annotations[CORDON_ANNOTATION]).toBe('{"lease":"l1","alreadyCordoned":true}');
    expect(node.uncordon('l1')).toMatchObject({ unschedulable: true, annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
  });

  it("stays if a person removed Sluice's cordon and set their own", () => {
    expect(new Node().cordon('l1').person(false).person(true).uncordon('l1').unschedulable).toBe(true);
  });

  it('stays if a person asks for that', () => {
    const node = new Node().cordon('l1');
    node.annotations[KEEP_CORDONED_ANNOTATION] = 'a broken fan';
    expect(node.uncordon('l1').unschedulable).toBe(true);
    expect(node.annotations[CORDON_ANNOTATION]).toBeUndefined();
  });

  it("is detected as removed by a person, and is set again as Sluice's own (MCO #6028, #5281)", () => {
    const node = new Node().cordon('l1').person(false);
    expect(wasTakenOff(node, 'l1')).toBe(true);
    expect(wasTakenOff(node, 'l2')).toBe(false);
    expect(node.cordon('l1').unschedulable).toBe(true);
    expect(node.uncordon('l1').unschedulable).toBe(false);
  });

  it('stays removed after a person removed it and the Node is given back', () => {
    expect(new Node().cordon('l1').person(false).uncordon('l1').unschedulable).toBe(false);
  });

  it('belongs to a person if it was set after the Node was given back', () => {
    expect(uncordonWrite(new Node().cordon('l1').uncordon('l1').person(true), 'l1')).toBeUndefined();
  });

  it('giving a Node back always writes once, so that a write based on an earlier read is refused', () => {
    const node = new Node();
    expect(uncordonWrite(node, 'l1')).toEqual({ annotations: { [UNCORDONED_ANNOTATION]: 'l1' } });
    expect(uncordonWrite(node.uncordon('l1'), 'l1')).toBeUndefined();
    expect(uncordonWrite(node, 'l2')).toEqual({ annotations: { [UNCORDONED_ANNOTATION]: 'l2' } });
  });

  it('is taken over from an earlier lease together with its mark, and the earlier lease cannot remove it', () => {
    const ours = new Node().cordon('l1').cordon('l2');
    expect(ours.uncordon('l1').unschedulable).toBe(true);
    expect(ours.uncordon('l2').unschedulable).toBe(false);
    const found = new Node().person(true).cordon('l1').cordon('l2');
    expect(found.uncordon('l2').unschedulable).toBe(true);
  });

  it('belongs to a person if its mark cannot be read', () => {
    const node = new Node().person(true);
    node.annotations[CORDON_ANNOTATION] = 'yes';
    expect(node.cordon('l1').uncordon('l1').unschedulable).toBe(true);
  });
});
